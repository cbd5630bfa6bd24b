import { randomBytes } from 'node:crypto';
import type { Clock } from './clock';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Returns random letters and digits. */
export function randomText(length: number): string {
  return Array.from(randomBytes(length), (byte) => ALPHABET.charAt(byte % ALPHABET.length)).join('');
}

/** Returns a random id in Clerk's format, such as `user_2x…`: the prefix, an underscore and 27 letters or digits. */
export const newId = (prefix: string): string => `${prefix}_${randomText(27)}`;

/** Returns the fields of a new row: its id, and the current time as the time of its creation and of its last change. */
export function newRow({ clock }: { readonly clock: Clock }, prefix: string) {
  const now = clock.now();
  return { id: newId(prefix), createdAt: now, updatedAt: now };
}
