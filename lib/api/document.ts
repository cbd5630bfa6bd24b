import * as z from 'zod/mini';
import * as schemas from './schemas';

/*
 * The API as an OpenAPI 3.1 document. Only the pages that describe the API and GET /openapi.json import this module, so a process
 * that serves other requests does not load it.
 *
 * An operation lists the responses that its route sends. DESCRIPTION covers the responses that any request can get.
 */

const DESCRIPTION = [
  'Links users of the identity provider to internal user ids. A request with a session, a call of `/auth/v1/register` and the ' +
    "provider's webhook each create the link if it does not exist yet.",
  '`HEAD` is `GET` without the body. Query parameters have no effect. The responses below have `cache-control: no-store` and ' +
    'an `x-request-id`, which the log contains too. A client may send an id of its own: 1 to 64 characters of ' +
    '`A-Z a-z 0-9 _ . : -`.',
  '`server-timing` states how the service processed the request. `cache` is the result of the cache lookup of the caller ' +
    '(`bypass`: the cache did not respond). `caller` and `registered` state whether the user of the session and the user in the ' +
    'request were `created` or `existing`. A user is `forgotten` if an operator has deleted it, or moved it to another id.',
  'The HTTP server, Next.js or the hosting platform can respond to any request with 400 (malformed request), 404 (no operation ' +
    'at this path, also with a trailing slash), 405 (another method), 408 (request incomplete after 10 s), 411 or 413 (body ' +
    'without a length or too large), 414 or 431 (URL or headers too large) or 417 (unknown `Expect`). Such a response has an ' +
    'ErrorBody, another body or none. `OPTIONS` gets a 204 with the header `allow`.',
].join('\n\n');

type SchemaName = keyof typeof schemas;

const SCHEMAS: Readonly<Record<SchemaName, string>> = {
  IdentityProviderUserId:
    'An id of the identity provider. Case-sensitive, well-formed Unicode without NUL, at most 255 code points.',
  InternalUserId: 'The internal id of a user, which never changes: a UUID, of version 7 if new.',
  RegisterUserRequest: 'The user to register. Other fields and the content type are ignored.',
  UserLink: 'The only link of an identity-provider user to an internal user.',
  AuthenticatedContext: 'The authenticated user of the request.',
  WebhookEvent:
    'A JSON object. The service reads only `type` and `data.id`. If a key occurs twice, the last value counts. In an event of ' +
    'the type `user.created`, a `data.id` that is not null and not empty must be an IdentityProviderUserId.',
  Acknowledgment: 'The event was verified and processed. `eventType` is its `type`.',
  ErrorBody: 'The reason for an error.',
  Alive: 'The process responds.',
  Ready: 'The service can process requests. `degraded` means that the cache does not respond.',
  NotReady: 'Why the process is not ready: the database is unavailable, or the process is shutting down.',
};

/** Returns the schemas of `components`. Only request bodies may have fields that their schema does not name. */
function componentSchemas() {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries<z.ZodMiniType>(schemas)) registry.add(schema, { id });
  const convert = (io: 'input' | 'output') =>
    z.toJSONSchema(registry, { io, uri: (id) => `#/components/schemas/${id}` }).schemas;
  const { RegisterUserRequest, WebhookEvent } = convert('input');
  const all = new Map(Object.entries({ ...convert('output'), RegisterUserRequest, WebhookEvent }));
  return Object.fromEntries(
    Object.entries(SCHEMAS).map(([name, description]) => {
      const { $schema, $id, ...schema } = all.get(name) ?? {};
      return [name, { ...schema, description }];
    }),
  );
}

/** The body of a request or a response. */
interface Body {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description: string }>>;
  readonly content: {
    readonly 'application/json': {
      readonly schema: { readonly $ref?: string; readonly type?: 'object' };
      readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
    };
  };
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security: readonly object[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Body>>;
}

const body = (description: string, schema: SchemaName, examples: Readonly<Record<string, unknown>>) => ({
  description,
  content: {
    'application/json': {
      schema: { $ref: `#/components/schemas/${schema}` },
      examples: Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }])),
    },
  },
});

const failure = (description: string, ...messages: readonly string[]) =>
  body(description, 'ErrorBody', Object.fromEntries(messages.map((message) => [message, { message }])));

/** Describes an operation that needs no session. Such operations are for monitoring and for developers. */
const serviceOperation = (operation: Omit<Operation, 'tags' | 'security'>) => ({
  get: { tags: ['service'], security: [], ...operation },
});

const identityProviderUserId = 'user_2abcDEFghiJKLmnoPQRstuVWXyz';
const EXAMPLE = { userId: '01890a5d-ac96-774b-bcce-b302099a8057', identityProviderUserId };
const sessions = [{ bearer: [] }, { cookie: [] }];

/** Responses of several operations. */
const shared = {
  Unauthorized: {
    ...failure(
      'There is no verified session, or the service does not accept its user, because an operator has deleted the user since ' +
        'the session token was issued or has moved the user to another id. The service checks the session before the body.',
      'Unauthorized',
    ),
    headers: { 'www-authenticate': { description: 'The scheme: `Bearer`.', schema: { type: 'string' } } },
  },
  PayloadTooLarge: failure('The body is too large.', 'Payload too large'),
  InternalServerError: failure(
    'An unexpected error, for example because the database is unavailable. The request can be repeated, even if the service ' +
      'has already registered a user.',
    'Internal Server Error',
  ),
  ServiceUnavailable: {
    ...failure('The session could not be checked. It may be valid.', 'Service Unavailable'),
    headers: { 'retry-after': { description: 'Seconds until a retry.', schema: { type: 'integer' } } },
  },
};

export const paths = {
  '/users/v1/me': {
    get: {
      operationId: 'getMe',
      tags: ['users'],
      summary: 'Get the authenticated user',
      description: 'Returns both ids of the user. The first request of a user registers the user.',
      security: sessions,
      responses: {
        200: body('The request has a verified session.', 'AuthenticatedContext', {
          context: { isAuthenticated: true, ...EXAMPLE },
        }),
        401: shared.Unauthorized,
        500: shared.InternalServerError,
        503: shared.ServiceUnavailable,
      },
    },
  },
  '/auth/v1/register': {
    post: {
      operationId: 'registerUser',
      tags: ['users'],
      summary: 'Register a user',
      description:
        'Creates the link of an identity-provider user, or returns the existing one. A client may register any id, unless ' +
        'the deployment allows only its own. A client that registers the user of its own session gets a 200, because the service links this user before it reads the body.',
      security: sessions,
      requestBody: {
        required: true,
        ...body('JSON in UTF-8, at most 16 KiB.', 'RegisterUserRequest', {
          user: { identityProviderUserId },
        }),
      },
      responses: {
        200: body('The user already existed.', 'UserLink', { link: EXAMPLE }),
        201: body('This request created the user. An id gets at most one 201.', 'UserLink', {
          link: EXAMPLE,
        }),
        400: failure(
          'The body is invalid, and the message describes the problem.',
          'The request body must be JSON in UTF-8',
          'identityProviderUserId must be a string',
        ),
        401: shared.Unauthorized,
        403: failure(
          'The deployment (`REGISTER_OWN_ID_ONLY`) accepts only the id of the session.',
          'Forbidden',
        ),
        409: failure(
          'An operator has deleted this user, or has moved the user to another id and the service no longer accepts the given ' +
            'id. A deleted user is linked again only by a session token of this user that was issued after the deletion.',
          'User is forgotten',
        ),
        413: shared.PayloadTooLarge,
        500: shared.InternalServerError,
        503: shared.ServiceUnavailable,
      },
    },
  },
  '/webhooks/idp/v1/user-created': {
    post: {
      operationId: 'receiveEvent',
      tags: ['webhooks'],
      summary: 'Receive a signed event',
      description:
        'The signature is the credential, and a session is ignored. Events may arrive late, repeatedly and in any order. The ' +
        'sender repeats a delivery after a 500.',
      security: [{ signature: [] }],
      requestBody: {
        required: true,
        ...body('The event as the identity provider sends it, in UTF-8, at most 256 KiB.', 'WebhookEvent', {
          created: { type: 'user.created', data: { id: identityProviderUserId } },
          other: { type: 'email.created', data: {} },
        }),
      },
      responses: {
        200: body(
          'The event was verified and processed. Only a `user.created` with a `data.id` registers a user.',
          'Acknowledgment',
          { acknowledgment: { received: true, eventType: 'user.created' } },
        ),
        400: failure(
          'The body is empty, the signature does not match its exact bytes, or the signed body is not an event.',
          'Missing body',
          'Invalid webhook signature',
          'Invalid webhook event',
        ),
        413: shared.PayloadTooLarge,
        500: shared.InternalServerError,
      },
    },
  },
  '/health/alive': serviceOperation({
    operationId: 'getAlive',
    summary: 'Check that the process responds',
    description: 'Does not query the database or the cache.',
    responses: { 200: body('The process responds.', 'Alive', { alive: { status: 'ok' } }) },
  }),
  '/health/ready': serviceOperation({
    operationId: 'getReady',
    summary: 'Check that the service can process requests',
    description: 'Queries the database with a timeout of 2 s, and the cache. Results are cached for 1 s.',
    responses: {
      200: body('The service can process requests. Without the cache, requests take longer.', 'Ready', {
        ready: { status: 'ok' },
        degraded: { status: 'degraded' },
      }),
      503: body('The service cannot process requests.', 'NotReady', {
        noDatabase: { errors: { database: 'unavailable' } },
        stopping: { errors: { process: 'stopping' } },
      }),
    },
  }),
  '/openapi.json': serviceOperation({
    operationId: 'getDocument',
    summary: 'Get this document',
    description: 'Returns the description of the API in OpenAPI 3.1.',
    responses: {
      200: { description: 'The document.', content: { 'application/json': { schema: { type: 'object' } } } },
    },
  }),
};

const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'A session token of the identity provider, not an OAuth token, machine token or API key.',
  },
  cookie: {
    type: 'apiKey',
    in: 'cookie',
    name: '__session',
    description:
      'A session token in a cookie of the identity provider, with the cookies `__client_uat` and, for a test instance, ' +
      '`__clerk_db_jwt`. The cookies are ignored if the browser reports that a page of another site sent the request.',
  },
  signature: {
    type: 'apiKey',
    in: 'header',
    name: 'svix-signature',
    description:
      'Standard Webhooks: signatures, separated by spaces, of which one must be valid. A signature is `v1,` and the base64 of ' +
      'the HMAC-SHA256 with the signing secret over `svix-id`, `svix-timestamp` and the exact bytes of the body, joined by dots. ' +
      '`svix-timestamp` is the time of the delivery in whole seconds since 1970, at most 5 minutes from the clock of the ' +
      'service. The prefix `webhook-` is accepted too.',
  },
};

/** The operations. `method` is in upper case. */
export const operations = Object.entries<Readonly<Record<string, Operation>>>(paths).flatMap(
  ([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      path,
      method: method.toUpperCase(),
    })),
);

export const openApiDocument = {
  openapi: '3.1.1',
  info: {
    title: 'identity-link',
    version: '1',
    description: DESCRIPTION,
    license: { name: 'MIT', identifier: 'MIT' },
  },
  servers: [{ url: '/', description: 'The service that serves this document' }],
  tags: [
    { name: 'users', description: 'For clients with a session of the identity provider.' },
    { name: 'webhooks', description: 'For the identity provider.' },
    { name: 'service', description: 'Health and description of the service. No session is required.' },
  ],
  paths,
  components: { schemas: componentSchemas(), securitySchemes },
};
