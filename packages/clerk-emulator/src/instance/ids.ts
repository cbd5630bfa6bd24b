import { randomBytes } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Returns a random id in Clerk's format, such as `user_2x…`: the prefix, an underscore and 27 letters or digits. */
export function newId(prefix: string): string {
  const characters = Array.from(randomBytes(27), (byte) => ALPHABET.charAt(byte % ALPHABET.length));
  return `${prefix}_${characters.join('')}`;
}
