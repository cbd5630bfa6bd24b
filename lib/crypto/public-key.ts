import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';

/** The parsed value, or a description of the problem. The description does not contain the parsed text. */
export type ParseResult<T> = { readonly value: T } | { readonly problem: string };

const WHAT_TO_SET =
  'set the public key of the instance, from -----BEGIN PUBLIC KEY----- to -----END PUBLIC KEY-----';

/**
 * Decodes a PEM. Accepts the forms that environment variables produce: in quotes, with `\n` or spaces instead of line
 * breaks, without header and footer, or encoded in base64 again. Returns undefined for any other text.
 */
function decodePem(pem: string): Buffer | undefined {
  const plain = pem
    .replace(/^(["'])([\s\S]*)\1$/, '$2')
    .replaceAll(/\\[nr]/g, '\n')
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

/** Parses an RSA-2048 public key and returns it in the format that the provider's SDK requires: SPKI in PEM. */
export function parsePublicKey(text: string): ParseResult<string> {
  const key = decodePem(text) ?? Buffer.alloc(0);
  const isPrivate = (['pkcs8', 'pkcs1'] as const).some((type) =>
    tryParse(() => createPrivateKey({ key, format: 'der', type })),
  );
  // This check comes first, because `createPublicKey` derives the public key from a private key.
  if (isPrivate || text.includes('PRIVATE KEY'))
    return { problem: `is a private key and must not be stored here: ${WHAT_TO_SET}` };
  if (text.includes('CERTIFICATE') || tryParse(() => new X509Certificate(key)))
    return { problem: `is a certificate: ${WHAT_TO_SET}` };
  const [publicKey] = (['spki', 'pkcs1'] as const).flatMap(
    (type) => tryParse(() => createPublicKey({ key, format: 'der', type })) ?? [],
  );
  if (!publicKey) return { problem: `is not a public key in PEM format: ${WHAT_TO_SET}` };
  const { modulusLength, publicExponent } = publicKey.asymmetricKeyDetails ?? {};
  if (publicKey.asymmetricKeyType !== 'rsa' || modulusLength !== 2048 || publicExponent !== 65537n)
    return { problem: `is not an RSA-2048 key, which session tokens are signed with: ${WHAT_TO_SET}` };
  return { value: publicKey.export({ type: 'spki', format: 'pem' }).toString() };
}
