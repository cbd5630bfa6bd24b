import { createPublicKey } from 'node:crypto';
import { foreignKeys } from 'clerk-emulator/testing';
import { expect, test } from 'vitest';
import { startStubServer } from '../harness/dependencies/stub-server';
import { bearer, cookie, ME, me, send, tokenFor } from '../harness/requests';
import { startServiceProcess, startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const other = foreignKeys();
const otherJwk = createPublicKey(other.publicKey).export({ format: 'jwk' });
/** Serves a key of the attacker. The service must never call this server. */
const attacker = stopAfterAll(
  await startStubServer((_request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ keys: [{ ...otherJwk, kid: 'theirs', alg: 'RS256', use: 'sig' }] }));
  }),
);
const service = stopAfterAll(await startTestService());
/** A process of the service that fetches the keys of the identity provider, because IDP_JWT_KEY is empty. */
const fetchingKeys = stopAfterAll(await startServiceProcess({ ...service.environment, IDP_JWT_KEY: '' }));

const signed = (
  header: Record<string, unknown>,
  privateKeyPem?: string,
  claims: Record<string, unknown> = {},
) => tokenFor(service.idp, 'user_confused', claims, { header, ...(privateKeyPem ? { privateKeyPem } : {}) });
const ourKid = () => service.idp.signingKey.kid;

test("A token that was signed with the provider's key is accepted, whether the service fetches the key or reads the key from IDP_JWT_KEY", async () => {
  for (const url of [service.url, fetchingKeys.url]) {
    expect((await me(url, signed({ kid: ourKid() }))).status).toBe(200);
  }
});

test.each<[string, () => Record<string, unknown>]>([
  ["the kid of the provider's key", () => ({ kid: ourKid() })],
  ['an unknown kid', () => ({ kid: 'theirs' })],
  ['no kid', () => ({ kid: undefined })],
  ['an empty kid', () => ({ kid: '' })],
  ['a path as kid', () => ({ kid: '../../../../dev/null' })],
  ['a URL as kid', () => ({ kid: `${attacker.url}/kid` })],
  ['__proto__ as kid', () => ({ kid: '__proto__' })],
  ["the attacker's key in the header", () => ({ kid: ourKid(), jwk: otherJwk })],
  [
    "URLs of the attacker's key in the header",
    () => ({ kid: 'theirs', jku: `${attacker.url}/jku`, x5u: `${attacker.url}/x5u` }),
  ],
  ['a critical extension', () => ({ kid: ourKid(), crit: ['exp'] })],
])('A token that was signed with another key gets a 401: %s', async (_what, header) => {
  for (const url of [service.url, fetchingKeys.url]) {
    const claims = [{}, { iss: `${attacker.url}/issuer` }];
    for (const each of claims) {
      expect((await me(url, signed(header(), other.privateKey, each))).status).toBe(401);
    }
  }
  expect(attacker.calls).toEqual([]);
});

test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
  ['An ID token', { aud: 'oauth_client', azp: 'oauth_client', nonce: 'n', sts: undefined }, {}],
  ['A token of a custom JWT template', { email: 'user@example.com', sts: undefined }, {}],
  ['A token whose header contains the category (cat) of session tokens', {}, { cat: 'cl_B7d4PD111AAA' }],
])(
  '%s with a signature of the provider is accepted if it has a sid. Without a valid sid, it gets a 401 as a bearer token and as a cookie, also on the second request',
  async (_what, claims, header) => {
    const make = (sid: object) => signed({ kid: ourKid(), ...header }, undefined, { ...claims, ...sid });
    expect((await me(service.url, make({}))).status).toBe(200);
    for (const sid of [undefined, '', null, { id: 'sess_1' }]) {
      const token = make({ sid });
      for (const headers of [bearer(token), cookie(token), bearer(token), cookie(token)]) {
        expect((await send(`${service.url}${ME}`, { headers })).status).toBe(401);
      }
    }
  },
);

test('If the service fetches the keys of the provider, a token with an unknown kid gets a 401, even if it was signed with one of these keys', async () => {
  for (const kid of ['theirs', '', '../../etc/passwd', '__proto__']) {
    expect((await me(fetchingKeys.url, signed({ kid }))).status).toBe(401);
  }
});
