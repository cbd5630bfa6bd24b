/** The provider whose pages the service shows. When a team leaves Clerk, another file replaces this one (docs/leave-clerk.md). */
export { clerk as mainProvider } from './clerk/index';
