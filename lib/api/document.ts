import * as z from 'zod/mini';
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiResponseObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi';
import * as schemas from './schemas';

/*
 * The API as an OpenAPI 3.1 document. Nothing that serves requests imports this: lib/api/openapi.json is the copy that is
 * served, `npm run openapi` writes it, and a unit test says that it is current.
 *
 * Which answers an operation has: those that can come to its own method at its own address, in the order in which they
 * are made; there is no `default`. So each has what the gate refuses of any request (400, 408, 417, 431). None has 404
 * or 405: these come to another address or method, which is no operation. They are described once, under `x-elsewhere`.
 * Tests hold every answer that the service gives to this, and this to the answers.
 */

const describe = (schema: z.ZodMiniType, id: string, description: string): void => {
  z.globalRegistry.add(schema, { id, description });
};

const AS_IT_STANDS =
  'Taken as it stands: white space is kept, and case matters. Well-formed Unicode without NUL, at most 255 code points.';

describe(
  schemas.IdentityProviderUserId,
  'IdentityProviderUserId',
  `The identity provider's id of a user. ${AS_IT_STANDS}`,
);
describe(
  schemas.InternalUserId,
  'InternalUserId',
  'The internal id of a user, which never changes: a UUID in lower case, of version 7 where the service made it.',
);
describe(
  schemas.RegisterUserRequest,
  'RegisterUserRequest',
  'Whom to register. Other fields are ignored, and the content type is not looked at.',
);
describe(schemas.UserLink, 'UserLink', 'The one link of an identity-provider user and an internal user.');
describe(schemas.AuthenticatedContext, 'AuthenticatedContext', 'Who makes the request.');
describe(
  schemas.WebhookEvent,
  'WebhookEvent',
  'A JSON object, of which `type` and `data.id` are read and nothing else. Of duplicate keys the last counts. For the ' +
    'type `user.created` a `data.id` that is there, not null and not empty is an IdentityProviderUserId.',
);
describe(
  schemas.Acknowledgment,
  'Acknowledgment',
  'The event was verified and handled. `eventType` is its `type`.',
);
describe(schemas.Alive, 'Alive', 'The process answers.');
describe(schemas.Ready, 'Ready', 'Requests can be served; `degraded`: without the cache.');
describe(
  schemas.NotReady,
  'NotReady',
  'Why not: the database cannot be reached, or the process has been told to end.',
);

const plainRequestId = z.string().check(z.regex(/^[A-Za-z0-9_.:-]{1,64}$/));
const noStore = z.literal('no-store');
const cacheAndCaller = 'cache;desc=(hit|((miss|bypass), caller;desc=(created|existing)))';
const registered = 'registered;desc=(created|existing)';
/** How the answer came about, where there is something to tell. */
const timing = (pattern: string) => z.string().check(z.regex(new RegExp(`^${pattern}$`)));

z.globalRegistry.add(plainRequestId, {
  header: { id: 'RequestId' },
  description:
    "The request's own `x-request-id`, if it is of this form; else a new UUID. It stands in the log too.",
});
z.globalRegistry.add(noStore, { header: { id: 'CacheControl' }, description: 'No answer may be kept.' });

const allow = z.string();
z.globalRegistry.add(allow, { description: 'The methods that are served here, separated by commas.' });

const timed = (schema: z.ZodMiniType) => {
  z.globalRegistry.add(schema, {
    description:
      'How the answer came about. `cache`: whether it knew the caller (`bypass`: it did not answer). `caller`, ' +
      '`registered`: whether the internal user of the caller, or of the id that was sent, was `created` or `existing`.',
  });
  return { 'server-timing': schema };
};

/** The headers of every answer, and further ones. */
const headers = (further: Record<string, z.ZodMiniType> = {}) =>
  z.object({ 'x-request-id': plainRequestId, 'cache-control': noStore, ...further });

const json = (schema: z.ZodMiniType, examples: Readonly<Record<string, unknown>> = {}) => ({
  'application/json': {
    schema,
    examples: Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }])),
  },
});

/** An answer that is no success: these messages, and no others. */
function failure(
  id: string,
  description: string,
  messages: Readonly<Record<string, string>>,
  further: Record<string, z.ZodMiniType> = {},
): ZodOpenApiResponseObject {
  const body = z.extend(schemas.ErrorBody, { message: z.literal(Object.values(messages)) });
  const examples = Object.fromEntries(Object.entries(messages).map(([name, message]) => [name, { message }]));
  return { id, description, headers: headers(further), content: json(body, examples) };
}

const badRequest = failure(
  'BadRequest',
  'No request that could be understood: no `Host`, or framing that is ambiguous.',
  {
    badRequest: 'Bad request',
  },
);
const unauthorized = failure('Unauthorized', 'No verified session. Told before the body is judged.', {
  unauthorized: 'Unauthorized',
});
const notFound = failure(
  'NotFound',
  'No operation has this address. Another spelling of an address is another address.',
  {
    notFound: 'Not found',
  },
);
const methodNotAllowed = failure(
  'MethodNotAllowed',
  'Nothing is served by this method here.',
  { methodNotAllowed: 'Method not allowed' },
  { allow: z.optional(allow) },
);
const requestTimeout = failure(
  'RequestTimeout',
  'The request was not complete after 10 s. The connection ends.',
  { requestTimeout: 'Request timeout' },
);
const payloadTooLarge = failure(
  'PayloadTooLarge',
  'The body is too large. It is counted while it is read.',
  { payloadTooLarge: 'Payload too large' },
  timed(z.optional(timing(cacheAndCaller))),
);
const expectationFailed = failure('ExpectationFailed', 'An `Expect` other than `100-continue`.', {
  expectationFailed: 'Expectation failed',
});
const headersTooLarge = failure(
  'RequestHeaderFieldsTooLarge',
  'The headers have more than 16 KiB. The connection ends.',
  { headersTooLarge: 'Request header fields too large' },
);
const internalServerError = failure(
  'InternalServerError',
  'Anything unexpected, such as a database out of reach. Nothing is half done; the call can be repeated.',
  { internalServerError: 'Internal Server Error' },
  timed(z.optional(timing(cacheAndCaller))),
);

/** Of any request: what is refused in front of the routes. */
const refusals = { 408: requestTimeout, 417: expectationFailed, 431: headersTooLarge };

const mustBe = (rule: string) => `identityProviderUserId must ${rule}`;
const invalidRegisterRequest = failure(
  'InvalidRegisterRequest',
  'The body is not as described; the message says what is wrong. Or as of any request: `Bad request`.',
  {
    notJson: 'The request body must be JSON in UTF-8',
    notAnObject: 'The request body must be a JSON object',
    notAString: mustBe('be a string'),
    empty: mustBe('not be empty'),
    tooLong: mustBe('have at most 255 characters'),
    notWellFormed: mustBe('be well-formed Unicode without NUL'),
    badRequest: 'Bad request',
  },
  timed(z.optional(timing(cacheAndCaller))),
);
const invalidDelivery = failure(
  'InvalidDelivery',
  'No body, signed or not; a signature that does not verify over the exact bytes; what was signed is no event. Or as of ' +
    'any request: `Bad request`.',
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
    'An id for the answer and the log, if it is 1 to 64 of `A-Z a-z 0-9 _ . : -`. Any other is ignored.',
  schema: { type: 'string' as const },
};

const registeredUser = (description: string): ZodOpenApiResponseObject => ({
  description,
  headers: headers(timed(timing(`${cacheAndCaller}, ${registered}`))),
  content: json(schemas.UserLink, { link: { userId, identityProviderUserId } }),
});

/** A body of one of these, or of the other signature scheme's names. */
const SIGNATURE = {
  id: 'The id of the message, the same in every delivery of it.',
  timestamp:
    'When it was sent, in whole seconds since 1970, without sign or leading zero; at most 5 minutes off either way.',
  signature:
    'One or several, separated by spaces; one good one is enough. `v1,` and the base64 of HMAC-SHA256, by the signing ' +
    'secret, over id, timestamp and the exact bytes of the body, joined by dots (Standard Webhooks).',
};
const signatureSchemes = (prefix: string) =>
  Object.entries(SIGNATURE).map(
    ([part, description]) =>
      [
        `${prefix}-${part}`,
        { type: 'apiKey' as const, in: 'header' as const, name: `${prefix}-${part}`, description },
      ] as const,
  );
const signed = ['svix', 'webhook'].map((prefix) =>
  Object.fromEntries(signatureSchemes(prefix).map(([name]): [string, string[]] => [name, []])),
);

const event = {
  description: 'The event as the identity provider words it, in UTF-8, at most 1 MiB.',
  required: true,
  content: json(schemas.WebhookEvent, { created, other: { type: 'user.updated', data: {} } }),
};
const deliveryAnswers: ZodOpenApiResponsesObject = {
  200: {
    id: 'Acknowledged',
    description:
      'The event was verified and handled: a `user.created` with a `data.id` registered a user, any other did nothing.',
    headers: headers(timed(z.optional(timing(registered)))),
    content: json(schemas.Acknowledgment, { acknowledgment: { received: true, eventType: 'user.created' } }),
  },
  400: invalidDelivery,
  408: requestTimeout,
  413: payloadTooLarge,
  417: expectationFailed,
  431: headersTooLarge,
  500: internalServerError,
};

const sessions = [{ bearer: [] }, { cookie: [] }];

const openOperation = (
  operation: Pick<ZodOpenApiOperationObject, 'operationId' | 'tags' | 'summary' | 'description'>,
  answers: ZodOpenApiResponsesObject,
): ZodOpenApiOperationObject => ({
  ...operation,
  security: [],
  parameters: [requestId],
  responses: { ...answers, 400: badRequest, ...refusals },
});

const elsewhere = (status: number, id: string) => ({
  status,
  response: { $ref: `#/components/responses/${id}` },
});

/** The document, the same for the same schemas. */
export const openApiDocument = () =>
  createDocument({
    openapi: '3.1.1',
    info: {
      title: 'identity-link',
      version: '1',
      description: [
        'Links users of the identity provider to internal user ids: on the first request of a session, by a call, or by the ' +
          "provider's webhook, whichever comes first.",
        '`HEAD` is `GET` without the body. A query changes nothing. What is answered at another address below `/auth`, ' +
          '`/health`, `/users` and `/webhooks`, or to another method, stands under `x-elsewhere`. Beside the headers that are ' +
          'described, an answer has those of HTTP itself and security headers.',
        'On a platform with functions, the platform answers 408, 417 and 431 in its own way.',
      ].join('\n\n'),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The service that serves this document' }],
    tags: [
      { name: 'users', description: 'For whoever has a session of the identity provider.' },
      { name: 'webhooks', description: 'For the identity provider.' },
      { name: 'service', description: 'About the service itself, for anybody.' },
    ],
    paths: {
      '/users/v1/me': {
        get: {
          operationId: 'getMe',
          tags: ['users'],
          summary: 'Who am I',
          description:
            'The authenticated context: what every guarded handler gets. On first sight the caller is registered.',
          security: sessions,
          parameters: [requestId],
          responses: {
            200: {
              description: 'The caller has a verified session.',
              headers: headers(timed(timing(cacheAndCaller))),
              content: json(schemas.AuthenticatedContext, {
                context: { isAuthenticated: true, userId, identityProviderUserId },
              }),
            },
            400: badRequest,
            401: unauthorized,
            ...refusals,
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
            "Creates the link of an identity-provider user, or finds it. The id need not be the caller's: any caller with a " +
            'session may register any id. A caller who registers itself gets 200, for the guard has linked it.',
          security: sessions,
          parameters: [requestId],
          requestBody: {
            description: 'In UTF-8, at most 16 KiB.',
            required: true,
            content: json(schemas.RegisterUserRequest, { user: { identityProviderUserId } }),
          },
          responses: {
            200: registeredUser('The user existed when the handler ran.'),
            201: registeredUser('This call created the user: at most one of all calls for an id.'),
            400: invalidRegisterRequest,
            401: unauthorized,
            408: requestTimeout,
            413: payloadTooLarge,
            417: expectationFailed,
            431: headersTooLarge,
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
            'The signature is the credential; a session that comes along is not looked at. Id, timestamp and signature come ' +
            'in `svix-…` or `webhook-…`, also mixed; where both are there, `svix-…` counts. Events may come late, repeated and ' +
            'in any order. After a 500 the sender delivers again.',
          security: signed,
          parameters: [requestId],
          requestBody: event,
          responses: deliveryAnswers,
        },
      },
      '/health/alive': {
        get: openOperation(
          {
            operationId: 'getAlive',
            tags: ['service'],
            summary: 'Does the process answer',
            description: 'Asks nothing else: neither database nor cache.',
          },
          {
            200: {
              description: 'It does.',
              headers: headers(),
              content: json(schemas.Alive, { alive: { status: 'ok' } }),
            },
          },
        ),
      },
      '/health/ready': {
        get: openOperation(
          {
            operationId: 'getReady',
            tags: ['service'],
            summary: 'Can requests be served',
            description: 'Asks the database, for 2 s at most. Answers of the last second are used again.',
          },
          {
            200: {
              description: 'They can. Without the cache they take longer.',
              headers: headers(),
              content: json(schemas.Ready, { ready: { status: 'ok' }, degraded: { status: 'degraded' } }),
            },
            503: {
              description: 'They cannot.',
              headers: headers(),
              content: json(schemas.NotReady, {
                noDatabase: { errors: { database: 'unavailable' } },
                stopping: { errors: { process: 'stopping' } },
              }),
            },
          },
        ),
      },
      '/openapi.json': {
        get: openOperation(
          {
            operationId: 'getDocument',
            tags: ['service'],
            summary: 'This document',
            description: 'The API as OpenAPI 3.1.',
          },
          {
            200: {
              description: 'The document.',
              headers: headers(),
              content: { 'application/json': { schema: z.looseObject({ openapi: z.literal('3.1.1') }) } },
            },
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
            'What the identity provider sends to `/webhooks/idp/v1/user-created`, and the answers that it gets there.',
          security: signed,
          requestBody: event,
          responses: deliveryAnswers,
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
            'A session token of the identity provider. OAuth tokens, machine tokens and API keys are none.',
        },
        cookie: {
          type: 'apiKey',
          in: 'cookie',
          name: '__session',
          description:
            'The same token as the identity provider sets it, with its `__client_uat`, and for a test instance ' +
            '`__clerk_db_jwt`. It does not count where the browser says that a foreign page sent it.',
        },
        ...Object.fromEntries(['svix', 'webhook'].flatMap(signatureSchemes)),
      },
      responses: {
        NotFound: notFound,
        MethodNotAllowed: methodNotAllowed,
        MethodOfAnother: {
          description:
            'A method that other addresses have and this one lacks: without a body, as the framework tells it.',
        },
        Options: {
          description: '`OPTIONS` of an operation’s address below a root of the API. It needs no session.',
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
