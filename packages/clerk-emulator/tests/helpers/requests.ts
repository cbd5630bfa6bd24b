import { randomUUID } from 'node:crypto';
import { get } from 'node:http';
import type { Emulator } from '../../src/emulator';
import { type Signing, signToken } from '../../src/testing/tokens';

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Returns a session token that is valid for ten minutes. The user need not exist. */
export function tokenFor(
  emulator: Pick<Emulator, 'issuer' | 'signingKey'>,
  sub: string,
  claims: Record<string, unknown> = {},
  signing?: Signing,
): string {
  const iat = Math.floor(Date.now() / 1000);
  const session = { sub, sid: `sess_${randomUUID()}`, iss: emulator.issuer, sts: 'active', v: 2 };
  return signToken(emulator, { ...session, iat, nbf: iat - 10, exp: iat + 600, ...claims }, signing);
}

/** Requests a path exactly as written and resolves with the status. Uses `node:http`, because `fetch` normalizes a path. */
export function statusOfRawPath(url: string, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    get({ hostname, port, path, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on('error', reject);
  });
}
