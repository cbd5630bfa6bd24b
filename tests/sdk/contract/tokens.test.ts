import { foreignKeys, type Signing } from 'clerk-emulator/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import { bearer, cookie, now, tokenFor } from '../../harness/requests';
import { instance, KEYS, loadService, type Service } from '../service';

/** Origin in the claim `azp` (authorized party) of the tokens. */
const FRONTEND = 'https://app.example.com';
const JWT_KEY = { IDP_JWT_KEY: instance.signingKey.publicKeyPem };

const foreignKey = foreignKeys().privateKey;
const token = (claims: Record<string, unknown> = {}, signing: Signing = {}) =>
  tokenFor(instance, 'user_1', { azp: FRONTEND, ...claims }, signing);
/** Claims that make a token a session token of version 1. Current session tokens have version 2. */
const VERSION_1 = {
  v: undefined,
  sts: undefined,
  org_id: 'org_1',
  org_role: 'org:admin',
  org_permissions: [],
};
/** Claim of the session token of an impersonated user. It names the actor: the user that impersonates the other user. */
const ACTOR = { act: { sub: 'user_of_the_support', iss: 'https://dashboard.clerk.com' } };
/** Claims of a token of a custom JWT template. Such a token has no session id. */
const TEMPLATE = {
  sid: undefined,
  sts: undefined,
  v: undefined,
  jti: 'jti_1',
  aud: 'https://db.example.com',
};
/** Claims of an OIDC ID token. Its audience is an OAuth application, and it has no session id. */
const ID_TOKEN = {
  sid: undefined,
  sts: undefined,
  v: undefined,
  azp: undefined,
  aud: 'client_1',
  nonce: 'n',
};

type Expected = { readonly user: string } | { readonly reason: string };
const USER: Expected = { user: 'user_1' };
const reason = (word: string): Expected => ({ reason: word });

/**
 * Tokens and their expected results. `inHeader` is the result of a request with the token as bearer token. `inCookie` is the
 * result of a request with the token as session cookie, and is omitted if it equals `inHeader`.
 */
const TOKENS: [name: string, make: () => string, inHeader: Expected, inCookie?: Expected][] = [
  ['A session token of version 2', () => token(), USER],
  ['A session token of version 1', () => token(VERSION_1), USER],
  ['A session token of an impersonated user', () => token(ACTOR), USER],
  ['A token of a JWT template', () => token(TEMPLATE), reason('malformed')],
  ['An OIDC ID token', () => token(ID_TOKEN), reason('malformed')],
  ['A session token without sub', () => token({ sub: undefined }), reason('malformed')],
  ['A session token with an empty sub', () => token({ sub: '' }), reason('no-user-id')],
  ['A session token of a pending session', () => token({ sts: 'pending' }), reason('pending-session')],
  ['An expired session token', () => token({ exp: now() - 60 }), reason('expired')],
  ['A session token that is not valid yet', () => token({ nbf: now() + 60 }), reason('not-yet-valid')],
  ['A token signed with another key', () => token({}, { privateKeyPem: foreignKey }), reason('wrong-key')],
  [
    'An unsigned token',
    () => token({}, { header: { alg: 'none' } }),
    reason('malformed'),
    // The service ignores a cookie whose value is not a JWT with a signature.
    reason('no-credential'),
  ],
  // For the header `alg: HS256`, tokenFor() signs with the public key as secret.
  [
    'A token signed with HS256 and the public key as secret',
    () => token({}, { header: { alg: 'HS256' } }),
    reason('malformed'),
  ],
  ['An OAuth access token', () => token({}, { header: { typ: 'at+jwt' } }), reason('malformed')],
  ['A machine token in JWT format', () => token({ sub: 'mch_1' }), reason('malformed')],
];

/**
 * Machine tokens, an OAuth token and an API key that are opaque (not JWTs). The service must reject them before it calls the SDK,
 * because the SDK would call the Backend API to verify each of them.
 */
const OPAQUE = ['mch_0123456789', 'mt_0123456789', 'oat_0123456789', 'ak_0123456789'];

describe('Without authorized parties', () => {
  let service: Service;
  beforeAll(async () => {
    service = await loadService({ ...KEYS.test, ...JWT_KEY });
  });

  test.each(TOKENS)(
    'Without authorized parties, %s gives the expected user or rejection reason, and the service makes no network call',
    async (_name, make, inHeader, inCookie = inHeader) => {
      const value = make();
      expect(await service.api(bearer(value)), 'in a header').toMatchObject(inHeader);
      expect(await service.api(cookie(value)), 'in a cookie').toMatchObject(inCookie);
      expect(service.calls).toEqual([]);
    },
  );

  test.each(OPAQUE)('The opaque token %s is rejected with 401 and without a network call', async (value) => {
    expect(await service.api(bearer(value))).toMatchObject({ status: 401, reason: 'malformed' });
    expect(await service.api(cookie(value))).toMatchObject({ status: 401, reason: 'no-credential' });
    expect(service.calls).toEqual([]);
  });

  test('Without authorized parties, a session token without azp is accepted', async () => {
    expect(await service.api(bearer(token({ azp: undefined })))).toMatchObject(USER);
  });
});

describe('With authorized parties', () => {
  let service: Service;
  beforeAll(async () => {
    service = await loadService({ ...KEYS.test, ...JWT_KEY, IDP_AUTHORIZED_PARTIES: FRONTEND });
  });

  test.each([
    [FRONTEND, USER],
    ['https://blog.example.com', reason('wrong-party')],
    [undefined, reason('wrong-party')],
  ])(
    'With authorized parties, a session token with azp %s gives the expected user or rejection reason, and the service makes no network call',
    async (azp, expected) => {
      const value = token({ azp });
      expect(await service.api(bearer(value)), 'in a header').toMatchObject(expected);
      expect(await service.api(cookie(value)), 'in a cookie').toMatchObject(expected);
      expect(service.calls).toEqual([]);
    },
  );
});
