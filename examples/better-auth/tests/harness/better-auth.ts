import { createHmac } from 'node:crypto';
import { freePort } from '../../dev/system/listen';
import { startProgram } from './commands';
import type { TestServiceOptions } from './service';

const SECRET = 'a secret of Better Auth for tests only';

/** Returns the options of a service with Better Auth, which needs its own address. */
export async function betterAuthOptions(): Promise<TestServiceOptions> {
  const port = await freePort();
  const environment = { PUBLIC_ORIGIN: `http://localhost:${port}`, BETTER_AUTH_SECRET: SECRET };
  return { port, environment };
}

/** Returns the value of the cookie of a session, which is also a bearer token. */
export const signSession = (token: string): string =>
  encodeURIComponent(`${token}.${createHmac('sha256', SECRET).update(token).digest('base64')}`);

/** Starts `commands/move-to-better-auth.ts`. */
export const startMove = (args: readonly string[], environment: Readonly<Record<string, string>>) =>
  startProgram(
    process.execPath,
    ['--import', 'tsx', 'commands/move-to-better-auth.ts', ...args],
    environment,
  );
