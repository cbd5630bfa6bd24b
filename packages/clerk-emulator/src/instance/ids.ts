import { randomBytes } from 'node:crypto';
import type { Clock } from './clock';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Returns a random id in Clerk's format, such as `user_2x…`: the prefix, an underscore and 27 letters or digits. */
export function newId(prefix: string): string {
  const characters = Array.from(randomBytes(27), (byte) => ALPHABET.charAt(byte % ALPHABET.length));
  return `${prefix}_${characters.join('')}`;
}

/** Returns the fields of a new row: its id, and the current time as the time of its creation and of its last change. */
export function newRow({ clock }: { readonly clock: Clock }, prefix: string) {
  const now = clock.now();
  return { id: newId(prefix), createdAt: now, updatedAt: now };
}
