import { createHmac, createPublicKey, verify } from 'node:crypto';
import { expect, test } from 'vitest';
import { parsePublishableKey } from '../../dev/idp/instance';
import { hashPassword, passwordMatches } from '../../dev/idp/passwords';
import { generateSigningKeyPem, signingKey, signToken } from '../../dev/idp/tokens';

const key = signingKey(generateSigningKeyPem());
const parts = (token: string) => {
  const [header = '', claims = '', signature = ''] = token.split('.');
  return {
    header: JSON.parse(Buffer.from(header, 'base64url').toString()),
    claims: JSON.parse(Buffer.from(claims, 'base64url').toString()),
    signed: Buffer.from(`${header}.${claims}`),
    signature: Buffer.from(signature, 'base64url'),
  };
};

test('a token carries exactly the claims given, verifiable by the published key that its header names', () => {
  const { header, claims, signed, signature } = parts(signToken(key, { sub: '' }));
  expect(header).toEqual({ alg: 'RS256', typ: 'JWT', kid: key.kid });
  expect(claims).toEqual({ sub: '' });
  const published = createPublicKey({ key: key.jwk, format: 'jwk' });
  expect(verify('RSA-SHA256', signed, published, signature)).toBe(true);
  expect(published.asymmetricKeyDetails?.modulusLength).toBe(2048);
});

test('hostile tokens can be made: unsigned, by the public key as a secret, by another key', () => {
  expect(signToken(key, {}, { header: { alg: 'none' } })).toMatch(/\.$/);
  const confused = parts(signToken(key, {}, { header: { alg: 'HS256' } }));
  expect(confused.signature).toEqual(createHmac('sha256', key.publicKeyPem).update(confused.signed).digest());
  const foreign = parts(signToken(key, {}, { privateKeyPem: generateSigningKeyPem() }));
  expect(verify('RSA-SHA256', foreign.signed, key.publicKeyPem, foreign.signature)).toBe(false);
  expect(() => signToken(key, {}, { header: { alg: 'ES256' } })).toThrow('ES256');
});

test('another key has another id', () => {
  expect(signingKey(generateSigningKeyPem()).kid).not.toBe(key.kid);
});

test('only the right password matches, and the same one is hashed differently each time', () => {
  const hashed = hashPassword('correct horse');
  expect(hashed).not.toContain('correct horse');
  expect(hashPassword('correct horse')).not.toBe(hashed);
  expect(passwordMatches('correct horse', hashed)).toBe(true);
  expect(passwordMatches('correct horsf', hashed)).toBe(false);
  expect(passwordMatches('', null)).toBe(false);
});

test('a publishable key says its kind and issuer; one that the SDKs refuse is refused', () => {
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
