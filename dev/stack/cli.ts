import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createClerkClient } from '@clerk/backend';
import { Command } from 'commander';
import { z } from 'zod';
import { messageOf } from '#lib/base/errors';
import { waitUntil } from '../system/processes';
import { prepareEnvironment, projectFolder, readSettings } from './settings';
import { findStack, type StackDetails } from './stack-file';

const DELIVERY_TIMEOUT_MS = 60_000;
const REQUEST_TIMEOUT_MS = 10_000;

const Deliveries = z.array(
  z.object({
    type: z.string(),
    status: z.enum(['pending', 'delivered', 'failed']),
    attempts: z.array(z.object({ status: z.number().nullable(), answer: z.string() })),
  }),
);

const Token = z.object({ jwt: z.string() });

interface TokenOptions {
  readonly oauth?: string;
  readonly scope?: readonly string[];
  readonly organization?: string;
}

function runningStack(): StackDetails {
  prepareEnvironment('dev');
  const { LOCAL_FOLDER } = readSettings(process.env);
  const stack = findStack(LOCAL_FOLDER);
  if (stack) return stack;
  throw new Error(
    `No local stack with the folder ${LOCAL_FOLDER} (LOCAL_FOLDER) is running. Start it with: npm run dev`,
  );
}

/** Returns a client of the emulator's Backend API, and `request`, which calls an operation that only the emulator has. */
function runningProvider() {
  const { IDP_SECRET_KEY: secretKey, CLERK_API_URL: apiUrl } = runningStack().environment;
  if (secretKey === undefined || apiUrl === undefined)
    throw new Error('The stack uses your own identity provider instance. Create users and tokens there.');
  const { users, sessions } = createClerkClient({ secretKey, apiUrl, telemetry: { disabled: true } });
  const request = async (path: string, body?: unknown): Promise<unknown> => {
    const headers = { authorization: `Bearer ${secretKey}`, 'content-type': 'application/json' };
    const post = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    return (await fetch(`${apiUrl}${path}`, { headers, signal, ...post })).json();
  };
  return { users, sessions, request };
}

/** Creates a user and waits until the webhook `user.created` is delivered or has failed. */
async function createUser(): Promise<void> {
  const { users, request } = runningProvider();
  const email = `user-${randomBytes(4).toString('hex')}@example.com`;
  const { id } = await users.createUser({ emailAddress: [email], skipPasswordRequirement: true });
  console.log(id);
  const findDelivery = async () =>
    Deliveries.parse(await request(`/v1/users/${id}/deliveries`)).find(({ type }) => type === 'user.created');
  await waitUntil(
    async () => ['delivered', 'failed'].includes((await findDelivery())?.status ?? ''),
    DELIVERY_TIMEOUT_MS,
  );
  const delivery = await findDelivery();
  const last = delivery?.attempts.at(-1);
  const outcome = last ? `${last.status ?? 'no response'} ${last.answer}` : 'no attempt yet';
  if (delivery?.status !== 'delivered')
    throw new Error(`The webhook user.created was not delivered: ${outcome}`);
  console.error(`${email}; response to the webhook user.created: ${outcome}`);
}

/** Prints a session token of the newest user, or an OAuth access token for the audience `oauth`. */
async function printToken({ oauth: audience, scope: scopes, organization }: TokenOptions): Promise<void> {
  const { users, sessions, request } = runningProvider();
  const [user] = (await users.getUserList({ orderBy: '-created_at', limit: 1 })).data;
  if (!user) throw new Error('There are no users yet. Create one: npm run -s local create-user');
  const session = { userId: user.id, activeOrganizationId: organization };
  const token =
    audience === undefined
      ? await sessions.getToken((await sessions.createSession(session)).id)
      : Token.parse(await request(`/v1/users/${user.id}/oauth_token`, { audience, scopes }));
  console.log(token.jwt);
}

async function requestMe(token: string): Promise<void> {
  const { app } = runningStack();
  const response = await fetch(`${app}/users/v1/me`, { headers: { authorization: `Bearer ${token}` } });
  console.error(`GET ${app}/users/v1/me: ${response.status}`);
  console.log(await response.text());
  if (!response.ok) process.exitCode = 1;
}

function printDatabaseUrl(): void {
  const { DATABASE_URL } = runningStack().environment;
  if (DATABASE_URL === undefined) throw new Error('The stack uses your own database. See DATABASE_URL.');
  console.log(DATABASE_URL);
}

/** Runs an operator command with the environment of the application. Then exits with the exit code of the command. */
async function runOperatorCommand(
  name: 'doctor' | 'users' | 'tenants',
  args: readonly string[],
): Promise<void> {
  const { app, environment } = runningStack();
  const doctorOptions = args.includes('--url') ? [] : ['--url', app];
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', `commands/${name}.ts`, ...(name === 'doctor' ? doctorOptions : []), ...args],
    { cwd: projectFolder, env: { ...process.env, ...environment }, stdio: 'inherit' },
  );
  // Ctrl-C reaches this process and the command. This process ignores the signal and waits for the command to exit.
  process.on('SIGINT', () => {});
  const [code] = await once(child, 'exit');
  process.exitCode = typeof code === 'number' ? code : 1;
}

const program = new Command('npm run -s local --').description('Commands for the running local stack.');
program.command('create-user').description('creates a user and waits for its webhook').action(createUser);
program
  .command('token')
  .description('prints a session token of the newest user')
  .option('--organization <id>', 'active organization of the session')
  .option('--oauth <audience>', 'prints an OAuth access token instead')
  .option('--scope <scopes...>', 'scopes of the access token')
  .action(printToken);
program
  .command('me <token>')
  .description('prints the response of /users/v1/me to a session token')
  .action(requestMe);
program
  .command('database-url')
  .description('prints the URL of the embedded PostgreSQL')
  .action(printDatabaseUrl);
for (const name of ['doctor', 'users', 'tenants'] as const) {
  program
    .command(`${name} [arguments...]`)
    .description(`runs \`npm run ${name}\` with the environment of the stack`)
    .allowUnknownOption()
    .helpOption(false)
    .action((args: string[]) => runOperatorCommand(name, args));
}
program.parseAsync().catch((error: unknown) => {
  console.error(messageOf(error));
  process.exitCode = 1;
});
