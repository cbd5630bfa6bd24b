import { createHmac, verify } from 'node:crypto';
import { expect, test } from 'vitest';
import { parsePublishableKey } from '../src/instance/instance';
import { generateSigningKeyPem, signingKey } from '../src/instance/jwt';
import { hashPassword, passwordMatches } from '../src/instance/passwords';
import { signToken } from '../src/testing';

const key = signingKey(generateSigningKeyPem());
const instance = { signingKey: key };
const parts = (token: string) => {
  const [header = '', claims = '', signature = ''] = token.split('.');
  return {
    claims: JSON.parse(Buffer.from(claims, 'base64url').toString()),
    signed: Buffer.from(`${header}.${claims}`),
    signature: Buffer.from(signature, 'base64url'),
  };
};

test('signToken() signs with the algorithm of the header and any private key, each of which has its own kid', () => {
  const own = parts(signToken(instance, { sub: '' }));
  expect(own.claims).toEqual({ sub: '' });
  expect(verify('RSA-SHA256', own.signed, key.publicKeyPem, own.signature)).toBe(true);
  expect(signToken(instance, {}, { header: { alg: 'none' } })).toMatch(/\.$/);
  const confused = parts(signToken(instance, {}, { header: { alg: 'HS256' } }));
  expect(confused.signature).toEqual(createHmac('sha256', key.publicKeyPem).update(confused.signed).digest());
  expect(signingKey(generateSigningKeyPem()).kid).not.toBe(key.kid);
  const foreign = parts(signToken(instance, {}, { privateKeyPem: generateSigningKeyPem() }));
  expect(verify('RSA-SHA256', foreign.signed, key.publicKeyPem, foreign.signature)).toBe(false);
  expect(() => signToken(instance, {}, { header: { alg: 'ES256' } })).toThrow('ES256');
});

test('A password hash matches only its password, and each hash has its own salt', () => {
  const hashed = hashPassword('correct horse');
  expect(hashed).not.toContain('correct horse');
  expect(hashPassword('correct horse')).not.toBe(hashed);
  expect(passwordMatches('correct horse', hashed)).toBe(true);
  expect(passwordMatches('correct horsf', hashed)).toBe(false);
  expect(passwordMatches('', null)).toBe(false);
});

test('A publishable key has the kind and the issuer of its instance, and an invalid key is rejected', () => {
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
