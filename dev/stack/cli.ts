import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { z } from 'zod';
import { messageOf } from '../system/errors';
import { waitUntil } from '../system/processes';
import { loadEnvironmentFiles, projectFolder, readSettings } from './settings';
import { findStack, type StackDetails } from './stack-file';

type Provider = NonNullable<StackDetails['identityProvider']>;

/** Commands of package.json that this program runs with the environment variables of the local stack. */
const operatorCommands = [
  'doctor',
  'users:backfill',
  'users:check',
  'users:show',
  'users:forget',
  'users:remember',
  'users:relink',
  'users:export',
] as const;
const usage = `Usage: npm run -s local create-user | token | me <session token> | database-url
   or: npm run -s local -- ${operatorCommands.join(' | ')} [its options]`;
const deliveryTimeoutMilliseconds = 60_000;

const Created = z.object({ id: z.string() });
const Users = z.array(Created);
const Token = z.object({ jwt: z.string() });
const Deliveries = z.array(
  z.object({
    type: z.string(),
    status: z.enum(['pending', 'delivered', 'failed']),
    attempts: z.array(z.object({ status: z.number().nullable(), answer: z.string() })),
  }),
);

type Delivery = z.infer<typeof Deliveries>[number];

/** Creates a user and waits until the webhook `user.created` is delivered or has failed. */
async function createUser(provider: Provider): Promise<void> {
  const email = `user-${randomBytes(4).toString('hex')}@example.com`;
  const { id } = Created.parse(
    await backendApi(provider, 'POST', '/v1/users', {
      email_address: [email],
      skip_password_requirement: true,
    }),
  );
  console.log(id);
  let delivery: Delivery | undefined;
  await waitUntil(async () => {
    delivery = await findDelivery(provider, id);
    return delivery !== undefined && delivery.status !== 'pending';
  }, deliveryTimeoutMilliseconds);
  const last = delivery?.attempts.at(-1);
  const outcome = last
    ? `${last.status ?? 'no response'} ${last.answer}`
    : `no attempt yet. Deliveries may be paused${provider.consoleUrl ? `: see ${provider.consoleUrl}` : ''}`;
  if (delivery?.status !== 'delivered')
    throw new Error(`The webhook user.created was not delivered: ${outcome}`);
  console.error(`${email}; response to the webhook user.created: ${outcome}`);
}

async function findDelivery(provider: Provider, userId: string): Promise<Delivery | undefined> {
  const deliveries = Deliveries.parse(await backendApi(provider, 'GET', `/v1/users/${userId}/deliveries`));
  return deliveries.find(({ type }) => type === 'user.created');
}

/** Prints a session token of the most recently created user. */
async function printToken(provider: Provider): Promise<void> {
  const [user] = Users.parse(await backendApi(provider, 'GET', '/v1/users?order_by=-created_at&limit=1'));
  if (!user) throw new Error('There are no users yet. Create one: npm run -s local create-user');
  const session = Created.parse(await backendApi(provider, 'POST', '/v1/sessions', { user_id: user.id }));
  console.log(Token.parse(await backendApi(provider, 'POST', `/v1/sessions/${session.id}/tokens`, {})).jwt);
}

/** Prints the response of the service to a request with the session token. */
async function me({ app }: StackDetails, token: string | undefined): Promise<void> {
  if (!token) throw new Error(usage);
  const response = await fetch(`${app}/users/v1/me`, {
    headers: { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(60_000),
  });
  console.error(`GET ${app}/users/v1/me: ${response.status}`);
  console.log(await response.text());
  if (!response.ok) process.exitCode = 1;
}

/** Prints the connection string of the embedded PostgreSQL, including the password. */
function printDatabaseUrl({ databaseUrl }: StackDetails): void {
  if (databaseUrl === undefined) throw new Error('The stack uses your own database. See DATABASE_URL.');
  console.log(databaseUrl);
}

async function backendApi(
  { url, secretKey }: Provider,
  method: string,
  path: string,
  body?: unknown,
): Promise<unknown> {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${secretKey}`, 'content-type': 'application/json' },
    signal: AbortSignal.timeout(10_000),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok)
    throw new Error(`The identity provider responded to ${method} ${path} with ${response.status}: ${text}`);
  return JSON.parse(text);
}

/** Runs an operator command with the environment of the application. Then exits with the exit code of the command. */
async function runOperatorCommand(
  { app, environment }: StackDetails,
  command: (typeof operatorCommands)[number],
  args: readonly string[],
): Promise<void> {
  const doctorOptions = args.includes('--url') ? [] : ['--url', app];
  const child = spawn(
    process.execPath,
    [
      ...['--import', 'tsx', `commands/${command.replace(':', '/')}.ts`],
      ...(command === 'doctor' ? doctorOptions : []),
      ...args,
    ],
    { cwd: projectFolder, env: { ...process.env, ...environment }, stdio: 'inherit' },
  );
  // Ctrl-C reaches this process and the command. This process ignores the signal and waits for the command to exit.
  process.on('SIGINT', () => {});
  const [code] = await once(child, 'exit');
  process.exitCode = typeof code === 'number' ? code : 1;
}

const commands = ['create-user', 'token', 'me', 'database-url'] as const;

async function main([word, ...args]: readonly string[]): Promise<void> {
  const command = commands.find((each) => each === word);
  const operatorCommand = operatorCommands.find((each) => each === word);
  const isUnknown = command === undefined && operatorCommand === undefined;
  if (isUnknown || (command !== undefined && args.length > (command === 'me' ? 1 : 0)))
    throw new Error(usage);
  loadEnvironmentFiles('dev');
  const { LOCAL_FOLDER } = readSettings(process.env);
  const stack = await findStack(LOCAL_FOLDER);
  if (!stack)
    throw new Error(
      `No local stack with the folder ${LOCAL_FOLDER} (LOCAL_FOLDER) is running. Start it with: npm run dev`,
    );
  if (operatorCommand !== undefined) return runOperatorCommand(stack, operatorCommand, args);
  if (command === 'me') return me(stack, args[0]);
  if (command === 'database-url') return printDatabaseUrl(stack);
  const { identityProvider } = stack;
  if (!identityProvider) {
    throw new Error('The stack uses your own identity provider instance. Create users and tokens there.');
  }
  return command === 'create-user' ? createUser(identityProvider) : printToken(identityProvider);
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(messageOf(error));
  process.exitCode = 1;
});
