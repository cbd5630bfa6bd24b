import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import * as z from 'zod/mini';
import type { ParseResult } from '../base/database-url';
import { environmentOf, isLoopback, parsedBy, required } from '../base/env';

/** Parses a publishable key: the host of the provider's Frontend API, which serves the browser SDK, and `$`, in base64. */
function readPublishableKey(key: string): ParseResult<{ key: string; frontendApi: string }> {
  const encoded = /^pk_(?:test|live)_([A-Za-z0-9+/=]+)$/.exec(key)?.[1] ?? '';
  const host = /^([a-z0-9.-]+\.[a-z0-9-]+)\$$/i.exec(Buffer.from(encoded, 'base64').toString())?.[1];
  return host === undefined
    ? { problem: 'must be a publishable key (pk_test_… or pk_live_…)' }
    : { value: { key, frontendApi: `https://${host}` } };
}

const REMEDY =
  'set the public key of the instance, from -----BEGIN PUBLIC KEY----- to -----END PUBLIC KEY-----';

/**
 * Decodes a key in PEM format, or in a form that variables often have: in quotes, with spaces or `\n` for line breaks, without
 * header and footer, or in base64 again. Returns undefined for other text. Does not check that the bytes are a key.
 */
function decodePem(pem: string): Buffer | undefined {
  const plain = pem
    .replace(/^(["'])([\s\S]*)\1$/, '$2')
    .replaceAll(/\\[nr]/g, '')
    .trim();
  const framed = /^(?:-----BEGIN [A-Z ]+-----)?([A-Za-z0-9+/=\s]+)(?:-----END [A-Z ]+-----)?$/.exec(plain);
  if (framed?.[1] === undefined) return undefined;
  const bytes = Buffer.from(framed[1], 'base64');
  const text = bytes.toString('latin1');
  return text.startsWith('-----BEGIN ') ? decodePem(text) : bytes;
}

function tryParse<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}

/** Parses an RSA-2048 public key. Returns the PEM-encoded SPKI that the SDK of the identity provider requires. */
function parsePublicKey(text: string): ParseResult<string> {
  const key = decodePem(text) ?? Buffer.alloc(0);
  const isPrivate = (['pkcs8', 'pkcs1'] as const).some((type) =>
    tryParse(() => createPrivateKey({ key, format: 'der', type })),
  );
  // This check comes first, because `createPublicKey` derives the public key from a private key.
  if (isPrivate || text.includes('PRIVATE KEY'))
    return { problem: `is a private key and must not be stored here: ${REMEDY}` };
  if (text.includes('CERTIFICATE') || tryParse(() => new X509Certificate(key)))
    return { problem: `is a certificate: ${REMEDY}` };
  const [publicKey] = (['spki', 'pkcs1'] as const).flatMap(
    (type) => tryParse(() => createPublicKey({ key, format: 'der', type })) ?? [],
  );
  if (!publicKey) return { problem: `is not a public key in PEM format: ${REMEDY}` };
  const { modulusLength, publicExponent } = publicKey.asymmetricKeyDetails ?? {};
  if (publicKey.asymmetricKeyType !== 'rsa' || modulusLength !== 2048 || publicExponent !== 65537n)
    return { problem: `is not an RSA-2048 key with the public exponent 65537: ${REMEDY}` };
  return { value: publicKey.export({ type: 'spki', format: 'pem' }).toString() };
}

/** URL of an emulator on the local stack (dev/). */
const loopbackUrl = required.check(
  z.refine((value) => {
    if (!URL.canParse(value)) return false;
    const { protocol, hostname, port } = new URL(value);
    return protocol === 'http:' && isLoopback(hostname) && port !== '';
  }, 'must be an http:// URL with a port on this machine: only the local stack sets this variable'),
);

/** The variables of Clerk. */
export const variables = z.object({
  IDP_SECRET_KEY: required.check(
    z.regex(/^sk_(?:test|live)_[\x21-\x7e]{10,}$/, {
      error: 'must be a secret key (sk_test_… or sk_live_…)',
      abort: true, // Skips the comparison with the publishable key.
    }),
  ),
  IDP_PUBLISHABLE_KEY: parsedBy(readPublishableKey),
  IDP_JWT_KEY: z.optional(parsedBy(parsePublicKey)),
  CLERK_API_URL: z.optional(loopbackUrl),
  CLERK_FAPI_URL: z.optional(loopbackUrl),
  IDP_CONSOLE_URL: z.optional(loopbackUrl),
});

/** Schema of all these variables. It also rejects the combination of a test key (`sk_test_`, `pk_test_`) and a live key. */
export const schema = variables.check(
  z.refine(
    // Compares the characters `test_` or `live_` of the two keys.
    ({ IDP_SECRET_KEY, IDP_PUBLISHABLE_KEY }) =>
      IDP_SECRET_KEY.slice(3, 8) === IDP_PUBLISHABLE_KEY.key.slice(3, 8),
    {
      path: ['IDP_SECRET_KEY'],
      error:
        'must belong to the same instance as IDP_PUBLISHABLE_KEY: one is a test key and the other a live key',
    },
  ),
);

/** Returns the variables of Clerk, which are valid in a service that has started. */
export const clerkEnvironment = environmentOf(schema);

/** Returns the issuer of the instance's access tokens, which is its authorization server. */
export function issuer(): string {
  const { CLERK_FAPI_URL, IDP_PUBLISHABLE_KEY } = clerkEnvironment();
  return CLERK_FAPI_URL ?? IDP_PUBLISHABLE_KEY.frontendApi;
}
