import * as z from 'zod/mini';
import type { MainProvider } from '../provider-port';
import { mailsOnConsole } from './browser-settings';
import { clerkEnvironment, issuer, schema, variables } from './variables';

/** What the service asks of Clerk outside of middleware.ts and its pages. Commands load what only they need. */
export const clerk: MainProvider = {
  name: 'Clerk',
  paths: { signIn: '/sign-in', signUp: '/sign-up', account: '/account' },
  variables: schema,
  isLive: () => clerkEnvironment().IDP_SECRET_KEY.startsWith('sk_live_'),
  issuer,
  consoleAddress: mailsOnConsole,
  check: async () => (await import('./checks')).checkProvider(),
  directory: {
    variables: z.pick(variables, { IDP_SECRET_KEY: true, CLERK_API_URL: true }),
    key: 'IDP_SECRET_KEY',
    load: () => import('./backend-api'),
  },
};
