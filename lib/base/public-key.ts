import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';

/** The parsed value, or a description of the problem. The description does not contain the input. */
export type ParseResult<T> = { readonly value: T } | { readonly problem: string };

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
export function parsePublicKey(text: string): ParseResult<string> {
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
