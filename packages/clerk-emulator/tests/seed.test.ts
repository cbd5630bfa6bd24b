import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test as base, expect } from 'vitest';
import { readFile, Seed } from '../src/seed';
import { type EmulatorFixtures, emulatorFixtures } from '../src/testing';
import { developmentBrowser } from './helpers/development-browser';
import { bearer } from './helpers/requests';
import { temporaryFolder } from './helpers/temporary-folder';

const folder = temporaryFolder();
const write = (name: string, text: string) => {
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return file;
};
const SEED = `
settings:
  usernames: true
users:
  - id: user_ada
    email_address: [ada@example.com]
    username: ada_l
    password: correct horse battery
    public_metadata: { plan: pro }
  - email_address: [grace+clerk_test@example.com]
    skip_password_requirement: true
organizations:
  - id: org_acme
    name: Acme
    members:
      - { user: ada@example.com, role: org:admin }
      - { user: grace+clerk_test@example.com }
`;
const seed = readFile(write('seed.yml', SEED), Seed);
const test = base.extend<EmulatorFixtures>(emulatorFixtures({ seed }));

const control = async (
  { url, variables }: EmulatorFixtures['emulator'],
  method: string,
  name: string,
  body?: object,
) => {
  const headers = { ...bearer(variables['CLERK_SECRET_KEY'] ?? ''), 'content-type': 'application/json' };
  const response = await fetch(`${url}/v1/emulator/${name}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
};

test('A seed creates users and organizations, and a reset over HTTP returns to them and to its settings', async ({
  emulator,
  signedInAs,
}) => {
  const { id, token } = signedInAs({ id: 'user_ada', email: 'ada@example.com' });
  expect([id, token.split('.')]).toEqual(['user_ada', expect.any(Array)]);
  const members = () =>
    emulator.store.memberships.all().map(({ organizationId, role }) => [organizationId, role]);
  const planted = [
    ['org_acme', 'org:admin'],
    ['org_acme', 'org:member'],
  ];
  expect(members()).toEqual(planted);
  emulator.deleteUser(id);
  const changed = await control(emulator, 'PATCH', 'settings', { usernames: false, multiSession: true });
  expect(changed.body).toMatchObject({ usernames: false, multiSession: true });
  expect((await control(emulator, 'PATCH', 'settings', { user_names: true })).status).toBe(422);
  const { body } = await control(emulator, 'POST', 'reset');
  expect(body.settings).toMatchObject({ usernames: true, multiSession: false });
  expect(emulator.settings).toEqual(body.settings);
  expect(members()).toEqual(planted);
  expect(emulator.store.sessions.size()).toBe(0);
  expect(emulator.store.users.get(id)?.publicMetadata).toEqual({ plan: 'pro' });
});

test('A test in any language adds failures and delays, and reads mails, over HTTP', async ({ emulator }) => {
  const operation = 'GET /v1/environment';
  await control(emulator, 'POST', 'failures', { operation, status: 503 });
  await control(emulator, 'POST', 'failures', { operation, delayMilliseconds: 1 });
  expect((await control(emulator, 'POST', 'failures', { operation: 'GET /v1/none' })).status).toBe(422);
  expect((await control(emulator, 'GET', 'failures')).body).toHaveLength(2);
  for (const status of [503, 200])
    expect((await fetch(`${emulator.url}/v1/environment`)).status).toBe(status);
  const browser = await developmentBrowser(emulator);
  await browser.signIn('grace+clerk_test@example.com', { strategy: 'email_code' });
  const { body } = await control(emulator, 'GET', 'mails');
  expect(body).toMatchObject([{ to: 'grace+clerk_test@example.com', code: '424242' }]);
});

test.each([
  ['users:\n  - email_address: [ada]\n', '2: users.0.email_address.0: Invalid email'],
  ['{ "users": [\n  { "email_address": ["a@b.io"] },\n  {} ] }', '3: users.1.email_address: the user needs'],
  ['settings:\n  usernames: true\n  multisession: true\n', '3: settings: Unrecognized key: "multisession"'],
  ['settings:\n  tokenTemplates:\n    - name: a b\n', '3: settings.tokenTemplates.0.name: Invalid string'],
  ['users: [\n', 'at line 2'],
])('A seed file is rejected with the line of the first mistake: %j', (text, message) => {
  expect(() => readFile(write('invalid.yml', text), Seed)).toThrow(message);
});
