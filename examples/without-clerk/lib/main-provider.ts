import type { MainProvider } from './provider-port';

/** The provider whose pages the service shows. The paths are those of examples/better-auth. Name those of your pages. */
export const mainProvider: MainProvider = {
  name: 'Better Auth',
  paths: { signIn: '/login', signUp: '/login', account: '/' },
};
