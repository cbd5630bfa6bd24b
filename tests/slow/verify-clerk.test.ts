import { existsSync } from 'node:fs';
import { signToken } from 'clerk-emulator/testing';
import { afterEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { freePort } from '../../dev/system/listen';
import { waitUntil } from '../../dev/system/processes';
import { runCommand, startCommand } from '../harness/commands';
import { startFetchServer } from '../harness/dependencies/stub-server';
import { startProvider } from '../harness/identity-provider';
import { PUBLISHABLE_KEY, SECRET_KEY } from '../harness/keys';
import { stopAfterAll } from '../vitest/stop-after-all';

const emulator = stopAfterAll(await startProvider());
/** Secret keys that the emulator and the SDK's version send. */
const keys = { IDP_SECRET_KEY: SECRET_KEY, IDP_PUBLISHABLE_KEY: PUBLISHABLE_KEY };
const environmentOf = (url: string) => ({ ...keys, CLERK_API_URL: url, CLERK_FAPI_URL: url });

type Json = Record<string, unknown>;
interface Change {
  /** Matches the operation, such as `GET /v1/users?limit=501`. */
  readonly on: RegExp;
  /** Changes the query before the call. */
  readonly query?: string;
  /** Returns a response in place of the emulator's. */
  readonly reply?: (got: Response) => Response | Promise<Response>;
  readonly claims?: (claims: Json) => Json;
}
type Row = readonly [description: string, name: string, place: string, change: Change];

const json = (status: number, body: unknown, headers = {}) => () => Response.json(body, { status, headers });
const without = (name: string) => async (got: Response) => {
  const value: unknown = await got.json();
  return Response.json(JSON.parse(JSON.stringify(value), (key, inner) => (key === name ? undefined : inner)));
};
const TOKEN = /^POST \/v1\/sessions\/\w+\/tokens/;
const PAGE_TOKEN = /^POST \/v1\/client\/sessions\/\w+\/tokens/;

/** Changes of ten places, each with the check that must notice it, and the place in the code that relies on it. */
const TEN: readonly Row[] = [
  ['another lifetime', 'is valid for 60 s', 'lib/idp/verdict.ts', { on: TOKEN, claims: (all) => ({ ...all, exp: Number(all['iat']) + 300 }) }],
];
