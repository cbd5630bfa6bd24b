import { createPublicKey } from 'node:crypto';
import { foreignKeys } from 'clerk-emulator/testing';
import { describe, expect, test } from 'vitest';
import { startImpostor } from '../harness/parts/impostor';
import { movedClock } from '../harness/parts/moved-clock';
import { bearer, cookie, ME, me, now, send, tokenFor } from '../harness/requests';
import { startServiceProcess, startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const other = foreignKeys();
const otherJwk = createPublicKey(other.publicKey).export({ format: 'jwk' });
const attacker = stopAfterAll(
  await startImpostor((_request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ keys: [{ ...otherJwk, kid: 'theirs', alg: 'RS256', use: 'sig' }] }));
  }),
);
const clock = stopAfterAll(movedClock());
const service = stopAfterAll(await startTestService());
const fetchingKeys = stopAfterAll(
  await startServiceProcess({ ...service.environment, ...clock.environment, IDP_JWT_KEY: '' }),
);

describe('a session token is verified with the key of this instance only', () => {
  const signed = (
    header: Record<string, unknown>,
    privateKeyPem?: string,
    claims: Record<string, unknown> = {},
  ) =>
    tokenFor(service.idp, 'user_confused', claims, { header, ...(privateKeyPem ? { privateKeyPem } : {}) });
  const ourKid = () => service.idp.signingKey.kid;

  test('given as a variable, or fetched from the provider', async () => {
    for (const url of [service.url, fetchingKeys.url]) {
      expect((await me(url, signed({ kid: ourKid() }))).status).toBe(200);
    }
  });

  test.each<[string, () => Record<string, unknown>]>([
    ['our kid', () => ({ kid: ourKid() })],
    ['a kid of its own', () => ({ kid: 'theirs' })],
    ['no kid', () => ({ kid: undefined })],
    ['an empty kid', () => ({ kid: '' })],
    ['a path as kid', () => ({ kid: '../../../../dev/null' })],
    ['a URL as kid', () => ({ kid: `${attacker.url}/kid` })],
    ['a name of the prototype as kid', () => ({ kid: '__proto__' })],
    ['its key in the header', () => ({ kid: ourKid(), jwk: otherJwk })],
    ['a URL of its keys', () => ({ kid: 'theirs', jku: `${attacker.url}/jku`, x5u: `${attacker.url}/x5u` })],
    ['a critical extension', () => ({ kid: ourKid(), crit: ['exp'] })],
  ])('a token that another key signed, with %s, is refused', async (_what, header) => {
    for (const url of [service.url, fetchingKeys.url]) {
      const claims = [{}, { iss: `${attacker.url}/issuer` }];
      for (const each of claims) {
        expect((await me(url, signed(header(), other.privateKey, each))).status).toBe(401);
      }
    }
    expect(attacker.calls).toEqual([]);
  });

  describe.each([
    [
      'an ID token',
      { aud: 'oauth_client', azp: 'oauth_client', nonce: 'n', sts: undefined, v: undefined },
      {},
    ],
    ['a token of a custom JWT template', { email: 'user@example.com', sts: undefined, v: undefined }, {}],
    ['a session token without its id, in the category of session tokens', {}, { cat: 'cl_B7d4PD111AAA' }],
  ])('signed by this instance, %s', (_what, claims, header) => {
    test.each<[string, unknown]>([
      ['no sid', undefined],
      ['an empty sid', ''],
      ['null as its sid', null],
      ['a sid that is not a string', { id: 'sess_1' }],
    ])('with %s gets a 401 each time, as a bearer and as a cookie', async (_sid, sid) => {
      const token = signed({ kid: ourKid(), ...header }, undefined, { ...claims, sid });
      for (const url of [service.url, fetchingKeys.url]) {
        for (const headers of [bearer(token), cookie(token), bearer(token), cookie(token)]) {
          expect((await send(`${url}${ME}`, { headers })).status).toBe(401);
        }
      }
    });

    test('with a sid is accepted, so that only the sid decides', async () => {
      const token = signed({ kid: ourKid(), ...header }, undefined, claims);
      expect((await me(service.url, token)).status).toBe(200);
    });
  });

  test('a token is refused from the fifth second after it expired', async () => {
    const at = now();
    clock.stand(at * 1000);
    const answers = [4, 5, 6].map(async (seconds) => {
      const expired = signed({ kid: ourKid() }, undefined, { iat: at - 60, nbf: at - 70, exp: at - seconds });
      return (await me(fetchingKeys.url, expired)).status;
    });
    expect(await Promise.all(answers)).toEqual([200, 401, 401]);
    clock.go();
  });

  test('our own key under a kid that the provider does not know is refused where keys are fetched', async () => {
    for (const kid of ['theirs', '', '../../etc/passwd', '__proto__']) {
      expect((await me(fetchingKeys.url, signed({ kid }))).status).toBe(401);
    }
  });
});
