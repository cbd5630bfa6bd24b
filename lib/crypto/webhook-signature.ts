import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

/** Maximum difference between a timestamp and the local clock, in both directions. The svix library has the same limit. */
const TOLERANCE_SECONDS = 5 * 60;

/** Maximum number of signatures. A sender adds one signature per active signing secret, usually two during a rotation. */
const MAX_SIGNATURES = 16;

/** A message id. It contains no dot, because dots separate the id, the timestamp and the body in the signed content. */
const MESSAGE_ID = /^[\w:-]{1,255}$/;

/** A timestamp in seconds since 1970, in decimal digits without sign or leading zeros. */
const TIMESTAMP = /^[1-9]\d{0,14}$/;

/** An HMAC-SHA256 value in base64: 32 bytes, 44 characters. */
const SIGNATURE = /^[A-Za-z0-9+/]{43}=$/;

/** The signed headers of a delivery. */
export interface SignedHeaders {
  /** The message id, which is the same in each delivery of a message. */
  readonly id: string;
  /** Time of this delivery in milliseconds since 1970. */
  readonly sentAt: number;
}

interface SignatureHeaders {
  readonly id: string;
  readonly timestamp: string;
  /** The well-formed `v1` signatures. Each buffer contains the base64 text, not the decoded value. */
  readonly signatures: readonly Buffer[];
}

function isWithinTolerance(timestamp: string): boolean {
  const now = Math.floor(Date.now() / 1000);
  return Math.abs(now - Number(timestamp)) <= TOLERANCE_SECONDS;
}

/**
 * Returns the well-formed `v1` signatures of a header. Returns an empty array if the header has more than 16 entries.
 *
 * Entries are separated by spaces. A valid entry is `v1,` and the signature. `Headers` joins repeated headers with a comma and
 * a space, so a comma may follow the signature. This comma and any text after it in the entry are ignored.
 */
function parseSignatures(header: string): Buffer[] {
  const entries = header.split(/ +/, MAX_SIGNATURES + 1);
  if (entries.length > MAX_SIGNATURES) return [];
  return entries.flatMap((entry) => {
    const [version, signature = ''] = entry.split(',');
    return version === 'v1' && SIGNATURE.test(signature) ? [Buffer.from(signature)] : [];
  });
}

/** Parses the signature headers. Returns undefined for headers that cannot be valid for any body. Computes no hash. */
function parseSignatureHeaders(headers: Headers): SignatureHeaders | undefined {
  const read = (part: string) => headers.get(`svix-${part}`) ?? headers.get(`webhook-${part}`) ?? '';
  const id = read('id');
  const timestamp = read('timestamp');
  if (!MESSAGE_ID.test(id) || !TIMESTAMP.test(timestamp) || !isWithinTolerance(timestamp)) return undefined;
  const signatures = parseSignatures(read('signature'));
  return signatures.length === 0 ? undefined : { id, timestamp, signatures };
}

/** Decodes a signing secret: base64, with or without the prefix `whsec_`. lib/env.ts validates the secret. */
export function decodeSigningSecret(secret: string): KeyObject {
  return createSecretKey(secret.replace(/^whsec_/, ''), 'base64');
}

/**
 * Verifies a Standard Webhooks signature (`v1`) and returns the signed headers, or undefined if the signature is invalid.
 *
 * `payload` is the exact text of the body. The signature is valid if one entry of the signature header matches one of the keys.
 * Malformed or outdated headers are rejected before an HMAC is computed. Otherwise, the function computes at most one HMAC per
 * key, independent of the number of entries. Compares the base64 texts of signatures in constant time. A different base64 text
 * that decodes to the expected bytes does not match.
 */
export function verifyWebhookSignature(
  payload: string,
  headers: Headers,
  keys: readonly KeyObject[],
): SignedHeaders | undefined {
  const parsed = parseSignatureHeaders(headers);
  if (parsed === undefined) return undefined;
  const { id, timestamp, signatures } = parsed;
  const body = Buffer.from(payload);
  const isValid = keys.some((key) => {
    const digest = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
    const expected = Buffer.from(digest);
    return signatures.some((signature) => timingSafeEqual(signature, expected));
  });
  return isValid ? { id, sentAt: Number(timestamp) * 1_000 } : undefined;
}
