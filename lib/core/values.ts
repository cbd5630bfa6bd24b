import type { Actor } from './verdict';

/**
 * Returns what is wrong with a value that must be a text. Returns undefined for a non-empty string of at most `maxLength` code
 * points that PostgreSQL and JSON can represent: well-formed Unicode without NUL.
 */
export function textProblem(value: unknown, maxLength: number): string | undefined {
  if (typeof value !== 'string') return 'must be a string';
  if (value === '') return 'must not be empty';
  // The first comparison avoids the count of code points for a long text.
  if (value.length > 2 * maxLength || [...value].length > maxLength)
    return `must have at most ${maxLength} characters`;
  return /[\0\uD800-\uDFFF]/u.test(value) ? 'must be well-formed Unicode without NUL' : undefined;
}

/** An internal id as the database returns it. New ids have UUID version 7. Imported rows may have another version. */
export const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The UUIDs without and with all bits (RFC 9562, 5.9 and 5.10), which stand for no id. */
export const RESERVED = /^(?:0{8}-(?:0{4}-){3}0{12}|f{8}-(?:f{4}-){3}f{12})$/;

/** Maximum number of code points of an identity-provider user id. */
export const MAX_ID_LENGTH = 255;

/** Returns true for an id in the format of docs/contract.md, 2.7. */
export const isIdentityProviderUserId = (id: unknown): id is string =>
  textProblem(id, MAX_ID_LENGTH) === undefined;

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** Returns an object with unknown fields. Any other value is an object without fields. */
export const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {});

/** Parses JSON. Returns undefined for text that is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the actor in the claim `act` of a session token (RFC 8693, 4.1), undefined without the claim, null if malformed. */
export function parseActor(act: unknown): Actor | null | undefined {
  if (act === undefined || act === null) return undefined;
  const { sub, type = null } = fieldsOf(act);
  if (!isIdentityProviderUserId(sub)) return null;
  if (type === null) return { id: sub };
  return typeof type === 'string' ? { id: sub, type } : null;
}
