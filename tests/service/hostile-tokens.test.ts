import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listen } from '../../dev/system/listen';
import { movedClock } from '../harness/parts/moved-clock';
import { me, tokenFor } from '../harness/requests';
import { type ServiceProcess, startServiceProcess, startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService());
const token = tokenFor(service.idp, 'user_caller');

describe('a session token is verified with the key of this instance only', () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const other = {
    publicKey: publicKey.export({ format: 'jwk' }),
    privateKey: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
  };
  const calls: string[] = [];
  const attacker = createServer((request, response) => {
    calls.push(request.url ?? '');
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ keys: [{ ...other.publicKey, kid: 'theirs', alg: 'RS256', use: 'sig' }] }));
  });
  let fetchingKeys: ServiceProcess;
  let attackerUrl: string;
  const clock = movedClock();

  beforeAll(async () => {
    await listen(attacker);
    const address = attacker.address();
    attackerUrl = `http://127.0.0.1:${address && typeof address === 'object' ? address.port : 0}`;
    fetchingKeys = await startServiceProcess({
      ...service.environment,
      ...clock.environment,
      IDP_JWT_KEY: '',
    });
  });
  afterAll(async () => {
    await fetchingKeys?.stop();
    clock.remove();
    await new Promise((resolve) => attacker.close(resolve));
  });

  const now = () => Math.floor(Date.now() / 1000);
  const signed = (
    header: Record<string, unknown>,
    privateKeyPem?: string,
    claims: Record<string, unknown> = {},
  ) =>
    tokenFor(service.idp, 'user_confused', claims, { header, ...(privateKeyPem ? { privateKeyPem } : {}) });
  const ourKid = () => {
    const [header = ''] = token.split('.');
    return String(Object(JSON.parse(Buffer.from(header, 'base64url').toString())).kid);
  };

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
    ['a URL as kid', () => ({ kid: `${attackerUrl}/kid` })],
    ['a name of the prototype as kid', () => ({ kid: '__proto__' })],
    ['its key in the header', () => ({ kid: ourKid(), jwk: other.publicKey })],
    ['a URL of its keys', () => ({ kid: 'theirs', jku: `${attackerUrl}/jku`, x5u: `${attackerUrl}/x5u` })],
    ['a critical extension', () => ({ kid: ourKid(), crit: ['exp'] })],
  ])('a token that another key signed, with %s, is refused', async (_what, header) => {
    for (const url of [service.url, fetchingKeys.url]) {
      const claims = [{}, { iss: `${attackerUrl}/issuer` }];
      for (const each of claims) {
        expect((await me(url, signed(header(), other.privateKey, each))).status).toBe(401);
      }
    }
    expect(calls).toEqual([]);
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
