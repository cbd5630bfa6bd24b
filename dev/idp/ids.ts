import { randomInt } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** A random id in the provider's form, such as `user_2x…`: the prefix and 27 letters and digits. */
export function newId(prefix: string): string {
  let id = `${prefix}_`;
  for (let index = 0; index < 27; index += 1) id += ALPHABET.charAt(randomInt(ALPHABET.length));
  return id;
}
