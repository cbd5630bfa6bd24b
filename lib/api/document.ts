import * as z from 'zod/mini';
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiResponseObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi';
import * as schemas from './schemas';

/*
 * The API as an OpenAPI 3.1 document. The service does not import this module. The service serves lib/api/openapi.json, which
 * `npm run openapi` generates from this module. A unit test checks that lib/api/openapi.json is up to date.
 *
 * An operation lists every possible response to its method and path. OpenAPI's `default` response is not used, so each
 * operation also lists the responses that the HTTP server can send to any request (400, 408, 417, 431). The extension field
 * `x-elsewhere` lists the responses to requests that match no operation, such as a 404 for an unknown path or a 405 for another
 * method. It covers only paths below the path prefixes of the API. The tests check that this document describes each API
 * response that they receive.
 */

const ID_FORMAT =
  'Case-sensitive, and white space is not trimmed. Well-formed Unicode without NUL, at most 255 characters (code points).';

const { ErrorBody, ...described } = schemas;
const DESCRIPTIONS: Readonly<Record<keyof typeof described, string>> = {
  IdentityProviderUserId: `The identity provider's id of a user. ${ID_FORMAT}`,
  InternalUserId:
    'The internal id of a user, which never changes. A UUID in lower case. The service creates version 7.',
  RegisterUserRequest: 'The user to register. Other fields and the content type are ignored.',
  UserLink:
    'The link between an identity-provider user and an internal user. An identity-provider user has at most one link.',
  AuthenticatedContext: 'The authenticated user of the request.',
  WebhookEvent:
    'A JSON object. The service reads only `type` and `data.id`. If a key occurs twice, the last value counts. In an event of ' +
    'the type `user.created`, a `data.id` that is not null and not empty must be an IdentityProviderUserId.',
  Acknowledgment: 'The event was verified and processed. `eventType` is its `type`.',
  Alive: 'The process responds.',
  Ready: 'The service can process requests. `degraded` means that the cache does not respond.',
  NotReady:
    'The reason why the process is not ready: the database is unavailable, or the process is shutting down.',
};
const schemasById: ReadonlyMap<string, z.ZodMiniType> = new Map(Object.entries(described));
for (const [id, description] of Object.entries(DESCRIPTIONS)) {
  const schema = schemasById.get(id);
  if (schema) z.globalRegistry.add(schema, { id, description });
}

const plainRequestId = z.string().check(z.regex(/^[A-Za-z0-9_.:-]{1,64}$/));
const noStore = z.literal('no-store');
/** Pattern of the entries `cache` and `caller` of a `server-timing` header. After a cache hit, the header has no `caller`. */
const cacheAndCaller = 'cache;desc=(hit|((miss|bypass), caller;desc=(created|existing)))';
const registered = (outcomes: string) => `registered;desc=(${outcomes})`;
/** Returns the schema of a `server-timing` header whose value matches a pattern. */
const timing = (pattern: string) => z.string().check(z.regex(new RegExp(`^${pattern}$`)));

z.globalRegistry.add(plainRequestId, {
  header: { id: 'RequestId' },
  description:
    "The client's `x-request-id` if it has this format, otherwise a new UUID. The log contains this id too.",
});
z.globalRegistry.add(noStore, {
  header: { id: 'CacheControl' },
  description: 'Responses must not be cached.',
});

const allow = z.string();
z.globalRegistry.add(allow, { description: 'The methods that this path supports, separated by commas.' });

/** Returns the `server-timing` header with this schema. */
const timed = (schema: z.ZodMiniType) => {
  z.globalRegistry.add(schema, {
    description:
      'How the service processed the request. `cache` is the result of the cache lookup of the caller (`bypass`: the cache ' +
      'did not respond). `caller` states whether the internal user of the caller was `created` or `existing`. `registered` ' +
      'states whether the user in the request was `created` or `existing`. If it is `forgotten`, the user was not registered, ' +
      'because an operator has deleted the user or has moved the user to another id.',
  });
  return { 'server-timing': schema };
};

/**
 * Returns a schema of the headers that the service sets on each of its responses, together with the headers in `further`. The
 * responses `MethodOfAnother` and `Options` do not have these headers, because Next.js sends these two responses itself.
 */
const headers = (further: Record<string, z.ZodMiniType> = {}) =>
  z.object({ 'x-request-id': plainRequestId, 'cache-control': noStore, ...further });

const json = (schema: z.ZodMiniType, examples: Readonly<Record<string, unknown>> = {}) => ({
  'application/json': {
    schema,
    examples: Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }])),
  },
});

/**
 * Describes an error response. `messages` is the only message of the response, or an object that maps the name of each example
 * to its message.
 */
function failure(
  id: string,
  description: string,
  messages: string | Readonly<Record<string, string>>,
  further: Record<string, z.ZodMiniType> = {},
): ZodOpenApiResponseObject {
  const named =
    typeof messages === 'string' ? { [id.charAt(0).toLowerCase() + id.slice(1)]: messages } : messages;
  const body = z.extend(ErrorBody, { message: z.literal(Object.values(named)) });
  const examples = Object.fromEntries(Object.entries(named).map(([name, message]) => [name, { message }]));
  return { id, description, headers: headers(further), content: json(body, examples) };
}

const badRequest = failure(
  'BadRequest',
  'Malformed request, for example without `Host` or with ambiguous framing.',
  'Bad request',
);
const unauthorized = failure(
  'Unauthorized',
  'There is no verified session, or the service does not accept its user, because an operator has deleted the user since the ' +
    'session token was issued or has moved the user to another id. The service checks the session before the body.',
  'Unauthorized',
);
const notFound = failure(
  'NotFound',
  'There is no operation at this path. A path with a trailing slash is another path.',
  'Not found',
);
const methodNotAllowed = failure(
  'MethodNotAllowed',
  'This path does not support the method.',
  'Method not allowed',
  { allow: z.optional(allow) },
);
const requestTimeout = failure(
  'RequestTimeout',
  'The request was not complete after 10 s. The server closes the connection.',
  'Request timeout',
);
const payloadTooLarge = failure(
  'PayloadTooLarge',
  'The body is too large. The limit applies to the bytes that arrive, not to `content-length`.',
  'Payload too large',
  timed(z.optional(timing(cacheAndCaller))),
);
const expectationFailed = failure(
  'ExpectationFailed',
  '`Expect` has a value other than `100-continue`.',
  'Expectation failed',
);
const headersTooLarge = failure(
  'RequestHeaderFieldsTooLarge',
  'The headers are larger than 16 KiB. The server closes the connection.',
  { headersTooLarge: 'Request header fields too large' },
);
const internalServerError = failure(
  'InternalServerError',
  'An unexpected error, for example because the database is unavailable. The request can be repeated, even if the service has ' +
    'already registered a user.',
  'Internal Server Error',
  timed(z.optional(timing(cacheAndCaller))),
);

/** Rejections that the HTTP server can send to any request. */
const rejections = { 400: badRequest, 408: requestTimeout, 417: expectationFailed, 431: headersTooLarge };

const idMust = (rule: string) => `identityProviderUserId must ${rule}`;
const invalidRegisterRequest = failure(
  'InvalidRegisterRequest',
  'The body is invalid, and the message describes the problem. Only `Bad request` means that the HTTP request is malformed.',
  {
    notJson: 'The request body must be JSON in UTF-8',
    notAnObject: 'The request body must be a JSON object',
    notAString: idMust('be a string'),
    empty: idMust('not be empty'),
    tooLong: idMust('have at most 255 characters'),
    notWellFormed: idMust('be well-formed Unicode without NUL'),
    badRequest: 'Bad request',
  },
  timed(z.optional(timing(cacheAndCaller))),
);
const forgotten = failure(
  'Forgotten',
  'An operator has deleted this user, or has moved the user to another id and the service no longer accepts the given id. ' +
    'A deleted user is linked again only by a session token of this user that was issued after the deletion.',
  'User is forgotten',
  timed(timing(`${cacheAndCaller}, ${registered('forgotten')}`)),
);
const invalidDelivery = failure(
  'InvalidDelivery',
  'The body is empty, the signature does not match the exact bytes of the body, or the signed body is not an event. ' +
    'Only `Bad request` means that the HTTP request is malformed.',
  {
    missingBody: 'Missing body',
    invalidSignature: 'Invalid webhook signature',
    invalidEvent: 'Invalid webhook event',
    badRequest: 'Bad request',
  },
);

const identityProviderUserId = 'user_2abcDEFghiJKLmnoPQRstuVWXyz';
const userId = '01890a5d-ac96-774b-bcce-b302099a8057';
const created = { type: 'user.created', data: { id: identityProviderUserId } };

const requestId = {
  name: 'x-request-id',
  in: 'header' as const,
  description:
    'An id for the response and the log: 1 to 64 characters of `A-Z a-z 0-9 _ . : -`. Other values are ignored.',
  schema: { type: 'string' as const },
};

const registeredUser = (description: string): ZodOpenApiResponseObject => ({
  description,
  headers: headers(timed(timing(`${cacheAndCaller}, ${registered('created|existing')}`))),
  content: json(schemas.UserLink, { link: { userId, identityProviderUserId } }),
});

/** Descriptions of signature headers. A header name is `svix-` or `webhook-`, followed by a property name of this object. */
const SIGNATURE = {
  id: 'The id of the message. It is the same in every delivery of the message.',
  timestamp:
    'Time of the delivery in whole seconds since 1970, without sign or leading zeros. It may differ from the clock of the ' +
    'service by at most 5 minutes.',
  signature:
    'One or more signatures, separated by spaces. One valid signature is sufficient. A signature is `v1,` and the base64 of ' +
    'the HMAC-SHA256 with the signing secret over id, timestamp and the exact bytes of the body, joined by dots (Standard ' +
    'Webhooks).',
};
const signatureSchemes = (prefix: string) =>
  Object.entries(SIGNATURE).map(
    ([part, description]) =>
      [
        `${prefix}-${part}`,
        { type: 'apiKey' as const, in: 'header' as const, name: `${prefix}-${part}`, description },
      ] as const,
  );
/** The two alternative security requirements: three headers with the prefix `svix-`, or three with the prefix `webhook-`. */
const signed = ['svix', 'webhook'].map((prefix) =>
  Object.fromEntries(signatureSchemes(prefix).map(([name]): [string, string[]] => [name, []])),
);

const event = {
  description: 'The event as the identity provider sends it, in UTF-8, at most 1 MiB.',
  required: true,
  content: json(schemas.WebhookEvent, { created, other: { type: 'email.created', data: {} } }),
};
const deliveryResponses: ZodOpenApiResponsesObject = {
  200: {
    id: 'Acknowledged',
    description:
      'The event was verified and processed. A `user.created` with a `data.id` registered the user, unless `registered` in ' +
      '`server-timing` is `forgotten`. Other events do not change users.',
    headers: headers(timed(z.optional(timing(registered('created|existing|forgotten'))))),
    content: json(schemas.Acknowledgment, { acknowledgment: { received: true, eventType: 'user.created' } }),
  },
  ...rejections,
  400: invalidDelivery,
  413: payloadTooLarge,
  500: internalServerError,
};

const sessions = [{ bearer: [] }, { cookie: [] }];

/** Describes an operation that needs no session. Such operations are for monitoring and for developers. */
const serviceOperation = (
  operation: Pick<ZodOpenApiOperationObject, 'operationId' | 'summary' | 'description'>,
  responses: ZodOpenApiResponsesObject,
): ZodOpenApiOperationObject => ({
  ...operation,
  tags: ['service'],
  security: [],
  parameters: [requestId],
  responses: { ...rejections, ...responses },
});

/** Describes a response that only one operation has. */
const ownResponse = (
  description: string,
  content: NonNullable<ZodOpenApiResponseObject['content']>,
  further: Record<string, z.ZodMiniType> = {},
): ZodOpenApiResponseObject => ({ description, headers: headers(further), content });

/** Returns an entry of `x-elsewhere`. The entry refers to the response whose id is `id`. */
const elsewhere = (status: number, id: string) => ({
  status,
  response: { $ref: `#/components/responses/${id}` },
});

/** Creates the document from the schemas. */
export const openApiDocument = () =>
  createDocument({
    openapi: '3.1.1',
    info: {
      title: 'identity-link',
      version: '1',
      description: [
        'Links users of the identity provider to internal user ids. A request with a session, a call ' +
          "of `/auth/v1/register` and the provider's webhook each create the link if it does not exist yet.",
        '`HEAD` is `GET` without the body. Query parameters have no effect. `x-elsewhere` lists the responses to other ' +
          'methods and to other paths below `/auth`, `/health`, `/users` and `/webhooks`. This document describes ' +
          'neither general HTTP headers, such as `date`, nor security headers.',
        'On a serverless platform, the platform itself responds with 408, 417 and 431, in its own format.',
      ].join('\n\n'),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The service that serves this document' }],
    tags: [
      { name: 'users', description: 'For clients with a session of the identity provider.' },
      { name: 'webhooks', description: 'For the identity provider.' },
      { name: 'service', description: 'Health and description of the service. No session is required.' },
    ],
    paths: {
      '/users/v1/me': {
        get: {
          operationId: 'getMe',
          tags: ['users'],
          summary: 'Get the authenticated user',
          description:
            'Returns both ids of the authenticated user. The first request of a user registers the user.',
          security: sessions,
          parameters: [requestId],
          responses: {
            200: ownResponse(
              'The request has a verified session.',
              json(schemas.AuthenticatedContext, {
                context: { isAuthenticated: true, userId, identityProviderUserId },
              }),
              timed(timing(cacheAndCaller)),
            ),
            ...rejections,
            401: unauthorized,
            500: internalServerError,
          },
        },
      },
      '/auth/v1/register': {
        post: {
          operationId: 'registerUser',
          tags: ['users'],
          summary: 'Register a user',
          description:
            'Creates the link of an identity-provider user, or returns the existing one. A client with a session may register ' +
            'any id. A client that registers the user of its own session gets a 200, because the service links this user before it ' +
            'reads the body.',
          security: sessions,
          parameters: [requestId],
          requestBody: {
            description: 'JSON in UTF-8, at most 16 KiB.',
            required: true,
            content: json(schemas.RegisterUserRequest, { user: { identityProviderUserId } }),
          },
          responses: {
            200: registeredUser('The user already existed.'),
            201: registeredUser('This request created the user. At most one request per id gets a 201.'),
            ...rejections,
            400: invalidRegisterRequest,
            401: unauthorized,
            409: forgotten,
            413: payloadTooLarge,
            500: internalServerError,
          },
        },
      },
      '/webhooks/idp/v1/user-created': {
        post: {
          operationId: 'receiveEvent',
          tags: ['webhooks'],
          summary: 'Receive a signed event',
          description:
            'The signature is the credential, and a session is ignored. The headers of id, timestamp and signature have the ' +
            'prefix `svix-` or `webhook-`. `svix-` takes precedence. Events may arrive late, repeatedly ' +
            'and in any order. The sender repeats a delivery after a 500.',
          security: signed,
          parameters: [requestId],
          requestBody: event,
          responses: deliveryResponses,
        },
      },
      '/health/alive': {
        get: serviceOperation(
          {
            operationId: 'getAlive',
            summary: 'Check that the process responds',
            description: 'Does not query the database or the cache.',
          },
          {
            200: ownResponse('The process responds.', json(schemas.Alive, { alive: { status: 'ok' } })),
          },
        ),
      },
      '/health/ready': {
        get: serviceOperation(
          {
            operationId: 'getReady',
            summary: 'Check that the service can process requests',
            description:
              'Queries the database with a timeout of 2 s, and the cache. Results are cached for 1 s.',
          },
          {
            200: ownResponse(
              'The service can process requests. Without the cache, requests take longer.',
              json(schemas.Ready, { ready: { status: 'ok' }, degraded: { status: 'degraded' } }),
            ),
            503: ownResponse(
              'The service cannot process requests.',
              json(schemas.NotReady, {
                noDatabase: { errors: { database: 'unavailable' } },
                stopping: { errors: { process: 'stopping' } },
              }),
            ),
          },
        ),
      },
      '/openapi.json': {
        get: serviceOperation(
          {
            operationId: 'getDocument',
            summary: 'Get this document',
            description: 'Returns the description of the API in OpenAPI 3.1.',
          },
          {
            200: ownResponse('The document.', {
              'application/json': { schema: z.looseObject({ openapi: z.literal('3.1.1') }) },
            }),
          },
        ),
      },
    },
    webhooks: {
      'user.created': {
        post: {
          operationId: 'userCreated',
          tags: ['webhooks'],
          summary: 'A user was created at the identity provider',
          description:
            'The event that the identity provider sends to `/webhooks/idp/v1/user-created`, and the possible responses.',
          security: signed,
          requestBody: event,
          responses: deliveryResponses,
        },
      },
    },
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description:
            'A session token of the identity provider. OAuth tokens, machine tokens and API keys are not accepted.',
        },
        cookie: {
          type: 'apiKey',
          in: 'cookie',
          name: '__session',
          description:
            'A session token in a cookie of the identity provider, together with the cookie `__client_uat` and, for a test ' +
            'instance, the cookie `__clerk_db_jwt`. The service ignores these cookies if the browser reports that a page of another ' +
            'site sent the request.',
        },
        ...Object.fromEntries(['svix', 'webhook'].flatMap(signatureSchemes)),
      },
      responses: {
        NotFound: notFound,
        MethodNotAllowed: methodNotAllowed,
        MethodOfAnother: {
          description:
            'Next.js sends this response, without a body, to a `GET`, `HEAD`, `POST`, `PUT`, `PATCH` or `DELETE` that an operation ' +
            'below `/auth`, `/health`, `/users` or `/webhooks` does not support.',
        },
        Options: {
          description:
            'Response to `OPTIONS` at the path of an operation below `/auth`, `/health`, `/users` or `/webhooks`. No session is required.',
          headers: z.object({ allow }),
        },
      },
    },
    'x-elsewhere': [
      elsewhere(204, 'Options'),
      elsewhere(400, 'BadRequest'),
      elsewhere(404, 'NotFound'),
      elsewhere(405, 'MethodNotAllowed'),
      elsewhere(405, 'MethodOfAnother'),
      elsewhere(408, 'RequestTimeout'),
      elsewhere(417, 'ExpectationFailed'),
      elsewhere(431, 'RequestHeaderFieldsTooLarge'),
    ],
  });
