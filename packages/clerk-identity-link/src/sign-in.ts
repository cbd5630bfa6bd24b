import { auth } from '@clerk/nextjs/server';

/** Redirects to the sign-in page of the application, or of Clerk. */
export const redirectToSignIn = async (_headers: Pick<Headers, 'get'>): Promise<never> =>
  (await auth()).redirectToSignIn();
