import { createHmac, createPublicKey, verify } from 'node:crypto';
import { expect, test } from 'vitest';
import { parsePublishableKey } from '../src/instance/instance';
import { hashPassword, passwordMatches } from '../src/instance/passwords';
import { generateSigningKeyPem, sessionToken, signingKey } from '../src/instance/tokens';
import { signToken } from '../src/testing/tokens';

const key = signingKey(generateSigningKeyPem());
const instance = { signingKey: key };
const parts = (token: string) => {
  const [header = '', claims = '', signature = ''] = token.split('.');
  return {
    header: JSON.parse(Buffer.from(header, 'base64url').toString()),
    claims: JSON.parse(Buffer.from(claims, 'base64url').toString()),
    signed: Buffer.from(`${header}.${claims}`),
    signature: Buffer.from(signature, 'base64url'),
  };
};

test('A session token contains the session id, the user id and the validity period of the token, and the published key verifies the token', () => {
  const session = { id: 'sess_1', userId: 'user_1', createdAt: 1_000_000 };
  const token = { issuer: 'https://a.example', seconds: 60, now: 1_120_500, origin: undefined };
  const { header, claims, signed, signature } = parts(sessionToken(key, session, token));
  expect(header).toMatchObject({ alg: 'RS256', typ: 'JWT', kid: key.kid });
  expect(claims).toMatchObject({
    sub: 'user_1',
    sid: 'sess_1',
    iat: 1120,
    exp: 1180,
    nbf: 1110,
    fva: [2, -1],
  });
  const published = createPublicKey({ key: key.jwk, format: 'jwk' });
  expect(verify('RSA-SHA256', signed, published, signature)).toBe(true);
  expect(published.asymmetricKeyDetails?.modulusLength).toBe(2048);
});

test('signToken() supports RS256, HS256, another private key and no signature, and throws for another algorithm', () => {
  const own = parts(signToken(instance, { sub: '' }));
  expect(own.claims).toEqual({ sub: '' });
  expect(verify('RSA-SHA256', own.signed, key.publicKeyPem, own.signature)).toBe(true);
  expect(signToken(instance, {}, { header: { alg: 'none' } })).toMatch(/\.$/);
  const confused = parts(signToken(instance, {}, { header: { alg: 'HS256' } }));
  expect(confused.signature).toEqual(createHmac('sha256', key.publicKeyPem).update(confused.signed).digest());
  const foreign = parts(signToken(instance, {}, { privateKeyPem: generateSigningKeyPem() }));
  expect(verify('RSA-SHA256', foreign.signed, key.publicKeyPem, foreign.signature)).toBe(false);
  expect(() => signToken(instance, {}, { header: { alg: 'ES256' } })).toThrow('ES256');
});

test('Each signing key has its own kid', () => {
  expect(signingKey(generateSigningKeyPem()).kid).not.toBe(key.kid);
});

test('A password hash matches only its password, and each hash has its own salt', () => {
  const hashed = hashPassword('correct horse');
  expect(hashed).not.toContain('correct horse');
  expect(hashPassword('correct horse')).not.toBe(hashed);
  expect(passwordMatches('correct horse', hashed)).toBe(true);
  expect(passwordMatches('correct horsf', hashed)).toBe(false);
  expect(passwordMatches('', null)).toBe(false);
});

test('parsePublishableKey() returns the kind and issuer of a key, and throws for a key that the SDKs reject', () => {
  const encoded = (host: string) => Buffer.from(`${host}$`).toString('base64');
  expect(parsePublishableKey(`pk_test_${encoded('a.clerk.accounts.dev')}`)).toMatchObject({
    development: true,
    issuer: 'https://a.clerk.accounts.dev',
  });
  expect(parsePublishableKey(`pk_live_${encoded('clerk.example.com')}`).development).toBe(false);
  const noDollar = Buffer.from('clerk.example.com').toString('base64');
  for (const key of [
    '',
    'pk_test_',
    'sk_test_abc',
    `pk_test_${noDollar}`,
    `pk_prod_${encoded('a.example')}`,
  ]) {
    expect(() => parsePublishableKey(key)).toThrow('publishable key');
  }
});
