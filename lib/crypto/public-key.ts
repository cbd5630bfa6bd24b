import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';

/** What was made of a text, or what is wrong with it, in words that quote nothing of it. */
export type Reading<T> = { readonly value: T } | { readonly problem: string };

const WHAT_TO_SET =
  'set the public key of the instance, from -----BEGIN PUBLIC KEY----- to -----END PUBLIC KEY-----';

/**
 * The bytes of a PEM, whatever became of it on its way here: in quotes, on one line with `\n` or spaces for its line breaks,
 * without its frame, or in base64 once more. Undefined for any other text.
 */
function bytesOf(text: string): Buffer | undefined {
  const plain = text
    .replace(/^(["'])([\s\S]*)\1$/, '$2')
    .replaceAll(/\\[nr]/g, '\n')
    .trim();
  const framed = /^(?:-----BEGIN [A-Z ]+-----)?([A-Za-z0-9+/=\s]+)(?:-----END [A-Z ]+-----)?$/.exec(plain);
  if (framed?.[1] === undefined) return undefined;
  const bytes = Buffer.from(framed[1], 'base64');
  const again = bytes.toString('latin1');
  return again.startsWith('-----BEGIN ') ? bytesOf(again) : bytes;
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Reads an RSA-2048 public key into the one form that the provider's SDK takes: SPKI in PEM. */
export function readPublicKey(text: string): Reading<string> {
  const key = bytesOf(text) ?? Buffer.alloc(0);
  const isPrivate = (['pkcs8', 'pkcs1'] as const).some((type) =>
    attempt(() => createPrivateKey({ key, format: 'der', type })),
  );
  // First: of a private key, Node.js would make the public one.
  if (isPrivate || text.includes('PRIVATE KEY'))
    return { problem: `is a private key, which nobody should have here: ${WHAT_TO_SET}` };
  if (text.includes('CERTIFICATE') || attempt(() => new X509Certificate(key)))
    return { problem: `is a certificate: ${WHAT_TO_SET}` };
  const [publicKey] = (['spki', 'pkcs1'] as const).flatMap(
    (type) => attempt(() => createPublicKey({ key, format: 'der', type })) ?? [],
  );
  if (!publicKey) return { problem: `is not a public key in PEM format: ${WHAT_TO_SET}` };
  const { modulusLength, publicExponent } = publicKey.asymmetricKeyDetails ?? {};
  if (publicKey.asymmetricKeyType !== 'rsa' || modulusLength !== 2048 || publicExponent !== 65537n)
    return { problem: `is not an RSA-2048 key, as session tokens are signed with: ${WHAT_TO_SET}` };
  return { value: publicKey.export({ type: 'spki', format: 'pem' }).toString() };
}
