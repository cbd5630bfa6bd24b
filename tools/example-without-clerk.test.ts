import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { freePort } from '../dev/system/listen';
import { responds, startProcess } from '../dev/system/start-process';
import { BUILD_FOLDER, withoutServiceVariables } from '../tests/harness/build';
import { bearer, deliver, send, userCreated } from '../tests/harness/requests';
import { startDependencies } from '../tests/harness/service';
import { stopAfterAll } from '../tests/vitest/stop-after-all';
import { temporaryFolder } from '../tests/vitest/temporary-folder';
import { CHECK_TYPES, copyCheckout, run } from './temporary-project';

// A team has moved to Better Auth (examples/better-auth), and removes Clerk as docs/leave-clerk.md says.

const TIMEOUT_MS = 600_000;
const folder = temporaryFolder();
copyCheckout(folder);
cpSync('examples/better-auth', folder, { recursive: true });

const page = readFileSync('docs/leave-clerk.md', 'utf8').split('## After')[1] ?? '';
const removal = /```sh\n(.*?)```/s.exec(page)?.[1] ?? '';
const { dependencies } = z
  .object({ dependencies: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync('package.json', 'utf8')));
const ofClerk = Object.keys(dependencies).filter((name) => name.startsWith('@clerk/'));
/** Runs a command in the project, without the variables of this checkout. */
const runThere = (command: string, environment: Readonly<Record<string, string>> = { NODE_ENV: 'test' }) =>
  run(command, folder, { ...withoutServiceVariables(), ...environment });

// The local stack and the emulator, which no service imports, still have the SDK of Clerk's Backend API.
const uninstall = () => rmSync(path.join(folder, 'node_modules/@clerk/nextjs'), { recursive: true });
await runThere(`npm() { [ "$*" = 'uninstall ${ofClerk.join(' ')}' ]; }; set -e; ${removal}`);
uninstall();

test(
  'Without Clerk, there are no type errors, the layers hold, and the other tests of guard, webhook, commands and doctor pass',
  async () => {
    await runThere(CHECK_TYPES);
    await runThere(
      'npx depcruise app lib events providers commands middleware.ts instrumentation.ts server.ts',
    );
    await runThere('npx vitest run --project unit');
    await runThere('npx vitest run --project in-process events register forget.test export');
  },
  TIMEOUT_MS,
);

test(
  'Without Clerk, a session of the remaining provider leads to the internal id, another request gets a 401, and the doctor finds no problem',
  async () => {
    rmSync(path.join(folder, 'node_modules/@clerk'), { recursive: true });
    const cache = path.join(BUILD_FOLDER, 'cache');
    if (existsSync(cache)) cpSync(cache, path.join(folder, cache), { recursive: true });
    await runThere(`npx next build && node commands/build-server.mjs`, { NEXT_DIST_DIR: BUILD_FOLDER });

    const port = await freePort();
    const url = `http://localhost:${port}`;
    const unset = { IDP_SECRET_KEY: '', IDP_PUBLISHABLE_KEY: '', IDP_JWT_KEY: '' };
    const set = { VERDICT_SIGNING_KEY: 'x'.repeat(32), PUBLIC_ORIGIN: url, REGISTER_OWN_ID_ONLY: '1' };
    const secret = { BETTER_AUTH_SECRET: 'a secret of Better Auth for tests only' };
    const { database, environment } = stopAfterAll(
      await startDependencies({ environment: { ...unset, ...set, ...secret } }),
    );
    const incomplete = { ...environment, VERDICT_SIGNING_KEY: '' };
    const start = `node ${BUILD_FOLDER}/server.mjs`;
    await expect(runThere(start, { ...incomplete, NEXT_DIST_DIR: BUILD_FOLDER })).rejects.toThrow(
      'VERDICT_SIGNING_KEY is missing',
    );
    const command = (line: string) => runThere(`node --import tsx commands/${line}`, environment);
    await command('db-deploy.ts');
    const service = stopAfterAll(
      startProcess(process.execPath, [`${BUILD_FOLDER}/server.mjs`, '-p', String(port)], {
        cwd: folder,
        env: { ...withoutServiceVariables(), NEXT_DIST_DIR: BUILD_FOLDER, ...environment },
        signal: 'SIGINT',
      }),
    );
    await service.ready(() => responds(`${url}/users/v1/start-up`));

    const signUp = await send(`${url}/api/auth/sign-up/email`, {
      method: 'POST',
      headers: { origin: url, 'content-type': 'application/json' },
      body: JSON.stringify({ email: 'ada@example.com', password: 'a long password', name: '' }),
    });
    const { id } = z.object({ user: z.object({ id: z.string() }) }).parse(signUp.body).user;
    const [userId = ''] = await database.idsOf(id);
    const cookie = signUp.headers
      .getSetCookie()
      .map((line) => line.split(';', 1))
      .join('; ');
    expect(await send(`${url}/users/v1/me`, { headers: { cookie } })).toMatchObject({
      status: 200,
      body: { userId, identityProviderUserId: id },
    });
    const foreign = { cookie, 'sec-fetch-site': 'cross-site' };
    for (const headers of [{}, bearer('eyJh.eyJz.c2ln'), { cookie: '__session=eyJh.eyJz.c2ln' }, foreign])
      expect(await send(`${url}/users/v1/me`, { headers })).toMatchObject({ status: 401 });
    const home = await send(url, { headers: { cookie } });
    expect([String(home.body).includes('Open your account'), home.status]).toEqual([true, 200]);
    expect(String((await send(url)).body)).toContain('href="/login"');
    expect(await deliver(url, userCreated('user_by_event'))).toMatchObject({ status: 200 });
    expect(await database.idsOf('user_by_event')).toHaveLength(1);

    expect(await command(`users.ts show ${id}`)).toContain(userId);
    expect(await command('users.ts --help')).not.toContain('backfill');
    const doctor = z.object({ status: z.string() });
    expect(doctor.parse(JSON.parse(await command(`doctor.ts --json --url ${url}`)))).toEqual({
      status: 'ok',
    });
  },
  TIMEOUT_MS,
);
