import { z } from 'zod';
import type { SentResponse } from '../../observe';
import { BackendSession, Invitation, listOf, SignInToken, TestingToken, TotalCount } from './backend';
import { Environment } from './environment';
import {
  ActiveSession,
  BrowserSession,
  Client,
  Reverification,
  SignIn,
  SignUp,
  withClient,
} from './frontend';
import {
  BackendUser,
  BrowserUser,
  DeletedObject,
  EmailAddress,
  Errors,
  JsonWebKeySet,
  Token,
  text,
} from './resources';

const signIn = withClient(SignIn);
const signUp = withClient(SignUp);
const session = withClient(BrowserSession);
const reverification = withClient(Reverification);
const client = withClient(Client);
const user = withClient(BrowserUser);

/** Schemas for the body of a successful response, by operation of the specification (Clerk's OpenAPI documents). */
const SPECIFIED: Readonly<Record<string, z.ZodType>> = {
  'GET /.well-known/jwks.json': JsonWebKeySet,
  'GET /v1/environment': Environment,
  'PATCH /v1/environment': Environment,
  'GET /v1/client': client,
  'PUT /v1/client': client,
  'POST /v1/client': client,
  'DELETE /v1/client': client,
  'DELETE /v1/client/sessions': client,
  'GET /v1/client/handshake': z.undefined(),
  'GET /v1/client/sessions/:id': session,
  'POST /v1/client/sessions/:id/touch': session,
  'POST /v1/client/sessions/:id/end': session,
  'POST /v1/client/sessions/:id/remove': session,
  'POST /v1/client/sessions/:id/tokens': Token,
  'POST /v1/client/sessions/:id/verify': reverification,
  'POST /v1/client/sessions/:id/verify/prepare_first_factor': reverification,
  'POST /v1/client/sessions/:id/verify/attempt_first_factor': reverification,
  'POST /v1/client/sign_ins': signIn,
  'GET /v1/client/sign_ins/:id': signIn,
  'POST /v1/client/sign_ins/:id/prepare_first_factor': signIn,
  'POST /v1/client/sign_ins/:id/attempt_first_factor': signIn,
  'POST /v1/client/sign_ins/:id/prepare_second_factor': signIn,
  'POST /v1/client/sign_ins/:id/attempt_second_factor': signIn,
  'POST /v1/client/sign_ins/:id/reset_password': signIn,
  'POST /v1/client/sign_ups': signUp,
  'GET /v1/client/sign_ups/:id': signUp,
  'PATCH /v1/client/sign_ups/:id': signUp,
  'POST /v1/client/sign_ups/:id/prepare_verification': signUp,
  'POST /v1/client/sign_ups/:id/attempt_verification': signUp,
  'GET /v1/tickets/accept': z.undefined(),
  'GET /v1/me': user,
  'PATCH /v1/me': user,
  'DELETE /v1/me': withClient(DeletedObject),
  'POST /v1/me/change_password': user,
  'GET /v1/me/email_addresses': z.array(EmailAddress),
  'GET /v1/me/sessions/active': z.array(ActiveSession),
  'POST /v1/me/sessions/:id/revoke': session,
  'GET /v1/jwks': JsonWebKeySet,
  'GET /v1/users': z.array(BackendUser),
  'POST /v1/users': BackendUser,
  'GET /v1/users/count': TotalCount,
  'GET /v1/users/:id': BackendUser,
  'PATCH /v1/users/:id': BackendUser,
  'DELETE /v1/users/:id': DeletedObject,
  'PATCH /v1/users/:id/metadata': BackendUser,
  'PUT /v1/users/:id/metadata': BackendUser,
  'POST /v1/users/:id/verify_password': z.strictObject({ verified: z.boolean() }),
  'GET /v1/sessions': listOf(BackendSession),
  'POST /v1/sessions': BackendSession,
  'GET /v1/sessions/:id': BackendSession,
  'POST /v1/sessions/:id/revoke': BackendSession,
  'POST /v1/sessions/:id/tokens': Token,
  'POST /v1/sign_in_tokens': SignInToken,
  'POST /v1/sign_in_tokens/:id/revoke': SignInToken,
  'POST /v1/testing_tokens': TestingToken,
  'GET /v1/invitations': listOf(Invitation),
  'POST /v1/invitations': Invitation,
  'POST /v1/invitations/:id/revoke': Invitation,
};

/** Schemas for responses that the specification does not describe, by operation. */
const UNSPECIFIED: Readonly<Record<string, z.ZodType>> = {
  // The OpenAPI document describes no response body for this operation. clerk-js 6.34.1 reads `id` from the response.
  'POST /v1/dev_browser': z.strictObject({ id: text }),
  // clerk-js calls the next two operations. The OpenAPI document lists the first path without an operation, and does not list
  // the second path.
  'PATCH /v1/client/sign_ins/:id/protect_check': signIn,
  'PATCH /v1/client/sign_ups/:id/protect_check': signUp,
  // The SDK calls this operation for handshakes in the nonce format.
  'GET /v1/clients/handshake_payload': z.strictObject({ directives: z.array(text) }),
  // Returns the webhook deliveries about a user. Clerk does not have this operation.
  'GET /v1/users/:id/deliveries': z.array(z.unknown()),
};

/** Schemas for the body of a successful response, by operation, such as `GET /v1/users/:id`. */
export const RESPONSES: Readonly<Record<string, z.ZodType>> = { ...SPECIFIED, ...UNSPECIFIED };

/** Literal paths, such as `/v1/users/count`, precede paths with a parameter, because the first match is used. */
const PATTERNS = Object.keys(RESPONSES)
  .toSorted((one, other) => Number(one.includes(':')) - Number(other.includes(':')))
  .map((operation) => ({ operation, pattern: new RegExp(`^${operation.replaceAll(':id', '[^/]+')}$`) }));

/** Returns the operation that sent a response, or undefined if no operation in `RESPONSES` has this method and path. */
export function operationOf({ method, path }: Pick<SentResponse, 'method' | 'path'>): string | undefined {
  return PATTERNS.find(({ pattern }) => pattern.test(`${method} ${path}`))?.operation;
}

/** Describes how a response of the emulator differs from the specification. Returns undefined if it conforms. */
export function differenceFromSpecification(response: SentResponse): string | undefined {
  const { method, path, status, body } = response;
  const parsed: unknown = body === '' ? undefined : JSON.parse(body);
  const operation = operationOf(response);
  const schema = status >= 400 ? Errors : RESPONSES[operation ?? ''];
  if (schema === undefined) return `${method} ${path} succeeded and has no schema`;
  const result = schema.safeParse(parsed);
  if (result.success) return undefined;
  return `${operation ?? `${method} ${path}`} ${status}: ${z.prettifyError(result.error)}`;
}
