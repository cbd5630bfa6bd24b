import { readFileSync } from 'node:fs';

/** The names of the variables of the service and of its provider. */
export const VARIABLE_NAMES = readFileSync('.env.example', 'utf8').match(/^[A-Z_]+(?==)/gm) ?? [];

/** Keys of the development instance that the tests use. */
export const SECRET_KEY = 'sk_test_c2VjcmV0b2Z0aGVzdGFuZGlu';
export const PUBLISHABLE_KEY = `pk_test_${Buffer.from('tests.clerk.accounts.dev$').toString('base64')}`;

/** Signing secret of the webhook deliveries in the tests. */
export const SIGNING_SECRET = `whsec_${Buffer.from('a signing secret for tests only!').toString('base64')}`;
/** Signing secret before a rotation. */
export const OLD_SIGNING_SECRET = `whsec_${Buffer.from('the secret that is rotated out..').toString('base64')}`;
