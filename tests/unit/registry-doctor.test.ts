import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { signingKey } from 'clerk-emulator';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { close, listen } from '../../dev/system/listen';
import { startProcess } from '../../dev/system/start-process';
import { SIGNING_KEY_PEM } from '../harness/dependencies/signing-key';

type Reply = readonly [status: number, header?: Record<string, string>, body?: string];

const UNAUTHORIZED = '{"message":"Unauthorized"}';
const reason = (value: string) => ({ 'x-clerk-auth-reason': value });
const to = (location: string) => ({ location });

/** Responses of an application to an invalid session, and what the doctor of the shadcn items prints. */
const CASES: Readonly<Record<string, readonly [Reply, output: string]>> = {
  '/guarded': [[401, reason('token-invalid-signature'), UNAUTHORIZED], 'ok        /guarded rejects'],
  '/slash': [[308, to('/slash/')], 'ok        /slash rejects'],
  '/without-key': [[401, reason('jwk-kid-mismatch'), UNAUTHORIZED], 'does not use CLERK_JWT_KEY'],
  '/page': [[307, to('/sign-in?to=%2Fpage')], '307 to /sign-in?to=%2Fpage: the handler in proxy.ts or'],
  '/host': [[308, to('https://www.example.com/host')], 'Set APPLICATION_URL to https://www.example.com.'],
  '/protected': [[404, reason('protect-rewrite')], '404 by auth.protect() in proxy.ts'],
  '/other': [[401, {}, '{"error":"Sign in"}'], 'the 401 is not from guard()'],
  '/open': [[200], '200 instead of 401'],
  '/outside': [[500], '500: see the log, or clerkMiddleware does not run'],
  '/closed': [[0], 'FAILURE  /closed rejects an invalid session: no response ('],
};

/** A Prisma client in memory. Its tables have a unique key on `clerkId`, unless `keys` is false. */
const CLIENT = `const failure = (code: string) => Object.assign(new Error(code), { meta: { code } });
export const state = { keys: true, needs: 'clerkId', isDeliveryLost: false };
const table = () => {
  let rows: any[] = [];
  const all = ({ where }) => rows.filter((row) => Object.keys(where).every((name) => row[name] === where[name]));
  return {
    findUnique: async ({ where }) => {
      if ('misspelled' in where) throw new Error('Unknown argument misspelled');
      if (all({ where }).length > 1) throw new Error('Expected zero or one element, got 20');
      return all({ where })[0] ?? null;
    },
    createManyAndReturn: async ({ data: [row] }) => {
      if (!(state.needs in row)) throw new Error('Argument ' + state.needs + ' is missing');
      if (state.keys && all({ where: { clerkId: row.clerkId } }).length > 0) return [];
      rows.push({ id: rows.length + 1, ...row });
      return rows.slice(-1);
    },
    upsert: async () => { if (!state.keys) throw failure('42P10'); return {}; },
    count: async (query) => all(query).length,
    deleteMany: async (query) => { const gone = all(query); rows = rows.filter((row) => !gone.includes(row)); },
  };
};
export const prisma = { user: table(), organization: table() };
`;
const CONFIG = `import { prisma, state } from './prisma';

export const users = () => prisma.user;
export const ID = 'id';
export const CLERK_ID = 'clerkId';
export const otherColumns = async (_id: string): Promise<object | undefined> => ({});
export const insert = (row) => users().createManyAndReturn({ data: [row] });
export const tenants = () => prisma.organization;
export const TENANT_ID = 'id';
export const ORGANIZATION_ID = 'clerkId';
export const otherTenantColumns = async (_id: string) => ({});
export const logError = () => {};
`;

const Items = z.object({
  items: z.array(
    z.object({ name: z.string(), files: z.array(z.object({ path: z.string(), target: z.string() })) }),
  ),
});

/** Runs the doctor in an application with these responses, which is also the identity provider. */
async function runDoctor(
  args: readonly string[],
  variables: Readonly<Record<string, string>>,
  config = CONFIG,
) {
  const cwd = mkdtempSync(path.join(os.tmpdir(), 'identity-link-doctor-'));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  const { items } = Items.parse(JSON.parse(readFileSync('registry.json', 'utf8')));
  for (const { name, files } of items)
    if (/^identity-link(?:-doctor|-tenants)?$/.test(name))
      for (const { path: file, target } of files) {
        mkdirSync(path.join(cwd, path.dirname(target)), { recursive: true });
        cpSync(file, path.join(cwd, target));
      }
  writeFileSync(path.join(cwd, 'package.json'), '{ "type": "module" }');
  writeFileSync(path.join(cwd, 'lib/prisma.ts'), CLIENT);
  writeFileSync(path.join(cwd, 'lib/identity-link.config.ts'), config);
  const others: Readonly<Record<string, Reply>> = {
    '/slash/': [401, reason('token-invalid-signature'), UNAUTHORIZED],
    '/v1/jwks': [200, {}, '{"keys":[{"n":"another"}]}'],
    '/v1/users/user_1': [200, {}, '{"id":"user_1"}'],
    '/hook': [200],
  };
  const server = createServer((request, response) => {
    const { url = '', headers } = request;
    const [status, headersOfReply, body] = CASES[url]?.[0] ?? others[url] ?? [404];
    if (status === 0) request.destroy();
    else if (url === '/hook' && headers['svix-id'] === undefined) response.writeHead(400).end();
    else response.writeHead(status, headersOfReply).end(body);
  });
  const url = `http://127.0.0.1:${await listen(server)}`;
  onTestFinished(() => close(server));
  const command = ['--import', import.meta.resolve('tsx'), 'lib/identity-link/doctor.ts', ...args];
  const env = { NODE_ENV: 'test' as const, APPLICATION_URL: url, CLERK_API_URL: url, ...variables };
  const { exited, written } = startProcess(process.execPath, command, { cwd, env });
  return { code: await exited, output: written.stdout };
}

test('The doctor of the shadcn items names the cause of each response, and does not call an untried check ok', async () => {
  const pem = signingKey(SIGNING_KEY_PEM).publicKeyPem.replaceAll('\n', '\\n');
  const { output, code } = await runDoctor(Object.keys(CASES), { CLERK_JWT_KEY: pem });
  expect(code).toBe(1);
  expect(output).toContain('FAILURE  CLERK_JWT_KEY belongs to the instance: the instance of');
  for (const [, expected] of Object.values(CASES)) expect(output).toContain(expected);
  expect(output).toContain(
    'not tried /webhooks/idp/v1/user-created rejects a wrong signature: it is not installed',
  );
  expect(output.match(/^ok .*/gm)).toEqual([
    expect.stringContaining('the files'),
    expect.stringContaining('/guarded'),
    expect.stringContaining('/slash'),
    ...['user', 'tenant'].flatMap((kind) => [
      expect.stringContaining(`names the table of each ${kind}`),
      expect.stringContaining(`twenty registrations of a ${kind}`),
    ]),
  ]);
});

test('The doctor of the shadcn items prints the next step alone, and exits with 1', async () => {
  const { output, code } = await runDoctor([], {}, '');
  expect([output, code]).toEqual([
    expect.stringMatching(/^NEXT STEP\n +lib\/identity-link\.config\.ts\n/),
    1,
  ]);
});

const MISTAKES: Readonly<
  Record<string, readonly [from: string, to: string, failure: string, remedy: string]>
> = {
  'otherColumns that throws': [
    'object | undefined> => ({})',
    "object | undefined> => { throw new Error('clerkClient'); }",
    'names the table of each user, and fills it: clerkClient',
    'Use createClerkClient of @clerk/backend',
  ],
  'a misspelled column of organizations': [
    "ORGANIZATION_ID = 'clerkId'",
    "ORGANIZATION_ID = 'misspelled'",
    'names the table of each tenant, and fills it: Unknown argument misspelled',
    '',
  ],
  'a column of organizations that is not filled': [
    'tenants = () =>',
    "tenants = () => (state.needs = 'name') &&",
    'twenty registrations of a tenant at once leave one row, by a unique key: Argument name is missing',
    'Columns without a default need otherColumns()',
  ],
  'a table of organizations without a unique key': [
    'tenants = () =>',
    'tenants = () => (state.keys = false) ||',
    'leave one row, by a unique key: the column clerkId has no unique key.',
    'Add @unique, and migrate.',
  ],
};

test.each(Object.entries(MISTAKES))(
  'The doctor of the shadcn items fails once for %s, with a remedy',
  async (_, [from, to, failure, remedy]) => {
    const { output, code } = await runDoctor([], {}, CONFIG.replace(from, to));
    expect(code).toBe(1);
    expect(output.match(/^FAILURE .*/gm)?.filter((line) => line.includes(failure))).toHaveLength(1);
    expect(output).toContain(remedy);
    expect(output).not.toMatch(/Expected zero or one element|^ {4}at /m);
  },
);

test('With --deliver, the doctor of the shadcn items fails for a webhook that does not register the user', async () => {
  const { output } = await runDoctor(['user_1', 'webhook:/hook'], {});
  expect(output).toContain('not tried a webhook links a user: your route may send emails. Pass --deliver');
  const delivered = await runDoctor(['user_1', 'webhook:/hook', '--deliver'], {});
  expect(delivered.output).toContain('FAILURE  a webhook links a user: there is no row.');
  expect(delivered.code).toBe(1);
});
