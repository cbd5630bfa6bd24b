import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { z } from 'zod';
import { messageOf } from '../system/errors';
import { waitUntil } from '../system/processes';
import { loadEnvironmentFiles, projectFolder, readSettings } from './settings';
import { findStack, type StackDetails } from './stack-file';

type Provider = NonNullable<StackDetails['identityProvider']>;

const usage = `Usage: npm run -s local create-user | token | me <session token> | database-url
   or: npm run -s local -- doctor | users:backfill | users:check | users:show | users:forget [its options]`;
const deliveryMilliseconds = 60_000;

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

/** Creates a user and waits until the service has acknowledged the webhook, or is known not to have. */
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
  }, deliveryMilliseconds);
  const last = delivery?.attempts.at(-1);
  const answer = last
    ? `${last.status ?? 'no answer'} ${last.answer}`
    : `no attempt yet; deliveries may be paused, see ${provider.consoleUrl}`;
  if (delivery?.status !== 'delivered')
    throw new Error(`The webhook user.created was not acknowledged: ${answer}`);
  console.error(`${email}; the webhook user.created was answered: ${answer}`);
}

async function findDelivery(provider: Provider, userId: string): Promise<Delivery | undefined> {
  const deliveries = Deliveries.parse(await backendApi(provider, 'GET', `/v1/users/${userId}/deliveries`));
  return deliveries.find(({ type }) => type === 'user.created');
}

/** Prints a session token of the user created last. */
async function printToken(provider: Provider): Promise<void> {
  const [user] = Users.parse(await backendApi(provider, 'GET', '/v1/users?order_by=-created_at&limit=1'));
  if (!user) throw new Error('There is no user yet: npm run -s local create-user');
  const session = Created.parse(await backendApi(provider, 'POST', '/v1/sessions', { user_id: user.id }));
  console.log(Token.parse(await backendApi(provider, 'POST', `/v1/sessions/${session.id}/tokens`, {})).jwt);
}

/** Shows who the service takes the bearer of the token for. */
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

/** Prints the address of the embedded PostgreSQL, with its password: for psql, prisma and the like. */
function printDatabaseUrl({ databaseUrl }: StackDetails): void {
  if (databaseUrl === undefined) throw new Error('The stack runs with a database of your own: DATABASE_URL.');
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
  const answer = await response.text();
  if (!response.ok)
    throw new Error(`The identity provider answered ${method} ${path} with ${response.status}: ${answer}`);
  return JSON.parse(answer);
}

/** Runs an operator's command in the environment of the application, and ends as it does. */
async function runOperatorsCommand(
  { app, databaseUrl, environment }: StackDetails,
  command: (typeof operatorsCommands)[number],
  args: readonly string[],
): Promise<void> {
  const ofStack = [
    ...(databaseUrl === undefined ? [] : ['--local']),
    ...(args.includes('--url') ? [] : ['--url', app]),
  ];
  const child = spawn(
    process.execPath,
    [
      ...['--import', 'tsx', `commands/${command.replace(':', '/')}.ts`],
      ...(command === 'doctor' ? ofStack : []),
      ...args,
    ],
    { cwd: projectFolder, env: { ...process.env, ...environment }, stdio: 'inherit' },
  );
  // Ctrl-C reaches both: the command says how it ended.
  process.on('SIGINT', () => {});
  const [code] = await once(child, 'exit');
  process.exitCode = typeof code === 'number' ? code : 1;
}

const commands = ['create-user', 'token', 'me', 'database-url'] as const;
const operatorsCommands = ['doctor', 'users:backfill', 'users:check', 'users:show', 'users:forget'] as const;

async function main([word, ...args]: readonly string[]): Promise<void> {
  const command = commands.find((each) => each === word);
  const operatorsCommand = operatorsCommands.find((each) => each === word);
  if (command === undefined && operatorsCommand === undefined) throw new Error(usage);
  loadEnvironmentFiles('dev');
  const stack = await findStack(readSettings(process.env).LOCAL_FOLDER);
  if (!stack) throw new Error('The local stack does not run, or is not up yet: start it with npm run dev.');
  if (operatorsCommand !== undefined) return runOperatorsCommand(stack, operatorsCommand, args);
  if (command === 'me') return me(stack, args[0]);
  if (command === 'database-url') return printDatabaseUrl(stack);
  const { identityProvider } = stack;
  if (!identityProvider) {
    throw new Error(
      'The stack runs with an identity provider instance of your own: create users and tokens there.',
    );
  }
  return command === 'create-user' ? createUser(identityProvider) : printToken(identityProvider);
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(messageOf(error));
  process.exitCode = 1;
});
