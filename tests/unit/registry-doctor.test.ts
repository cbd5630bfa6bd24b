import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { signingKey } from 'clerk-emulator';
import { expect, onTestFinished, test } from 'vitest';
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
  '/page': [[307, to('/sign-in?to=%2Fpage')], '307 to /sign-in?to=%2Fpage: the handler in proxy.ts asks for'],
  '/local': [[307, to('/en/local')], '307 to /en/local: the handler in proxy.ts adds a locale'],
  '/host': [[308, to('https://www.example.com/host')], 'Set APPLICATION_URL to https://www.example.com.'],
  '/moved': [[308, to('/new')], '308 to /new: the handler in proxy.ts or next.config redirects'],
  '/protected': [[404, reason('protect-rewrite')], '404 by auth.protect() in proxy.ts'],
  '/other': [[401, {}, '{"error":"Sign in"}'], 'the 401 is not from guard()'],
  '/open': [[200], '200 instead of 401'],
  '/outside': [[500], '500: see the log, or clerkMiddleware does not run'],
  '/items/v1/x': [[401, reason('token-invalid-signature'), UNAUTHORIZED], '500 for /items/v1/a.css'],
};

const SCHEMA = `model Account {
  key     Int    @id
  clerkId String @unique
}
`;

/** Runs the doctor against an application with these responses, which is also the identity provider. */
async function runDoctor(jwtKey: string | undefined) {
  const cwd = mkdtempSync(path.join(os.tmpdir(), 'identity-link-doctor-'));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  mkdirSync(path.join(cwd, 'prisma'));
  writeFileSync(path.join(cwd, 'prisma/schema.prisma'), SCHEMA);
  const others: Readonly<Record<string, Reply>> = {
    '/items/v1/a.css': [500],
    '/slash/': [401, reason('token-invalid-signature'), UNAUTHORIZED],
    '/v1/jwks': [200, {}, '{"keys":[{"n":"another"}]}'],
  };
  const server = createServer(({ url = '' }, response) => {
    const [status, headers, body] = CASES[url]?.[0] ?? others[url] ?? [404];
    response.writeHead(status, headers).end(body);
  });
  const url = `http://127.0.0.1:${await listen(server)}`;
  onTestFinished(() => close(server));
  const args = ['--import', import.meta.resolve('tsx'), path.resolve('registry/doctor.ts')];
  const env = { NODE_ENV: 'test' as const, APPLICATION_URL: url, CLERK_API_URL: url, CLERK_JWT_KEY: jwtKey };
  const { exited, written } = startProcess(process.execPath, [...args, ...Object.keys(CASES)], { cwd, env });
  return { code: await exited, output: written.stdout };
}

test('The doctor of the shadcn items names the cause of each response, and does not call an untried check ok', async () => {
  const { publicKeyPem } = signingKey(SIGNING_KEY_PEM);
  const [{ output, code }, withoutKey] = await Promise.all([
    runDoctor(publicKeyPem.replaceAll('\n', '\\n')),
    runDoctor(undefined),
  ]);
  expect(code).toBe(1);
  expect(output).toContain('FAILURE  CLERK_JWT_KEY belongs to the instance: the instance of');
  for (const [, expected] of Object.values(CASES)) expect(output).toContain(expected);
  expect(output.match(/^ok .*/gm)).toHaveLength(3);
  expect(output).toContain(
    'not tried /webhooks/idp/v1/user-created rejects a wrong signature: it is not installed',
  );
  for (const line of ['users = () => prisma.account', "ID = 'key'", "CLERK_ID = 'clerkId'"])
    expect(output).toContain(`export const ${line};`);
  expect(withoutKey.output).toContain('not tried CLERK_JWT_KEY belongs');
});
