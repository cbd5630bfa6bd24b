import { auth } from '@clerk/nextjs/server';
import type { NextRequest } from 'next/server';
import { cache } from 'react';
import * as z from 'zod/mini';
import { type ActionResult, HttpError, invalidInput, valuesOf } from './http';
import { resolveUserId } from './user-id';

/** The authenticated user of a request. `userId` is the internal id. */
export interface AuthenticatedContext {
  readonly isAuthenticated: true;
  readonly userId: string;
  readonly identityProviderUserId: string;
}

/** Returns both ids of the user, or undefined without a verified session. Links a new user. Runs once per rendered page. */
export const getUser = cache(async (): Promise<AuthenticatedContext | undefined> => {
  const { isAuthenticated, userId: identityProviderUserId } = await auth();
  if (!isAuthenticated || !identityProviderUserId) return undefined;
  const userId = await resolveUserId(identityProviderUserId);
  return { isAuthenticated, userId, identityProviderUserId };
});

/** Returns the same as `getUser`. Without a verified session, a page or a server action redirects to the sign-in page. */
export async function requireUser(): Promise<AuthenticatedContext> {
  return (await getUser()) ?? (await auth()).redirectToSignIn();
}

type RouteHandler<C> = (request: NextRequest, context: C) => Promise<Response> | Response;

/** Creates a route. An HttpError becomes a JSON response. Next.js handles every other error: a 500 without details. */
export function route<C>(handler: RouteHandler<C>): RouteHandler<C> {
  return async (request, context) => {
    try {
      return await handler(request, context);
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      return Response.json({ message: error.message }, { status: error.status });
    }
  };
}

/** Creates a route whose handler runs only for a verified session. Without one, the response is a 401 in JSON. */
export function guard<C>(
  handler: (request: NextRequest, user: AuthenticatedContext, context: C) => Promise<Response> | Response,
): RouteHandler<C> {
  return route(async (request, context) => {
    const user = await getUser();
    if (!user) throw new HttpError(401, 'Unauthorized');
    return handler(request, user, context);
  });
}

/**
 * Creates a server action whose handler runs only with a verified session and valid input. The input is the last argument,
 * because `useActionState` passes the previous result first. An HttpError of the handler becomes a result with `ok: false`.
 */
export function guardAction<S extends z.core.$ZodType, T>(
  schema: S,
  handler: (input: z.output<S>, user: AuthenticatedContext) => Promise<T>,
): (...args: [...state: [previous?: unknown], input: FormData | z.input<S>]) => Promise<ActionResult<T>> {
  return async (...args) => {
    const user = await requireUser();
    const input = args.at(-1);
    const parsed = z.safeParse(schema, input instanceof FormData ? valuesOf(input) : input);
    if (!parsed.success) return invalidInput(parsed.error);
    try {
      return { ok: true, data: await handler(parsed.data, user) };
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      return { ok: false, status: error.status, message: error.message, fields: {} };
    }
  };
}
