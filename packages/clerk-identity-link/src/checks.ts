import { createPublicKey, randomUUID } from 'node:crypto';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { fieldsOf } from '../../../lib/core/values';
import { type Configuration, created, type LinkTable, NotTried, signingSecrets } from './configuration';

const isConfiguration = (message: unknown): message is Configuration => 'tables' in fieldsOf(message);

async function check(name: string, run: () => Promise<string>): Promise<void> {
  try {
    console.log('ok       ', name, await run());
  } catch (error) {
    const isTried = fieldsOf(error)['name'] !== 'NotTried'; // Each module of the package may have its own class.
    if (isTried) process.exitCode = 1;
    const { message, cause } = error instanceof Error ? error : { message: error, cause: undefined };
    // The messages of Prisma end with the cause. Those of Drizzle are the statement.
    const [reason] = `${cause instanceof Error ? cause.message : message}`.trim().split('\n').slice(-1);
    console.log(isTried ? 'FAILURE  ' : 'not tried', `${name}: ${reason}`);
  }
}

/** Returns the value of a variable. An empty one is not set. */
const variable = (name: string) => process.env[name] || undefined;

async function checkKeys(): Promise<string> {
  const secretKey = variable('CLERK_SECRET_KEY');
  if (!secretKey) throw new Error('CLERK_SECRET_KEY is not set.');
  const response = await fetch(`${variable('CLERK_API_URL') ?? 'https://api.clerk.com'}/v1/jwks`, {
    headers: { authorization: `Bearer ${secretKey}` },
    signal: AbortSignal.timeout(10_000),
  });
  if (response.status !== 200) throw new Error(`Clerk rejects CLERK_SECRET_KEY (${response.status}).`);
  const { keys }: { keys: { n?: string }[] } = await response.json();
  const pem = variable('CLERK_JWT_KEY')?.replaceAll('\\n', '\n');
  if (pem && !keys.some(({ n }) => n === createPublicKey(pem).export({ format: 'jwk' }).n))
    throw new Error('CLERK_JWT_KEY is not a key of the instance of CLERK_SECRET_KEY.');
  return '';
}

async function checkSecrets(): Promise<string> {
  if (signingSecrets().length > 0) return '';
  throw new NotTried('CLERK_WEBHOOK_SIGNING_SECRET is not set. Only a webhook needs it.');
}

async function checkTable(
  { find, rehearse }: LinkTable,
  id: string,
  surroundings: Configuration,
): Promise<string> {
  const existing = await find(id);
  if (existing !== undefined) return `(${id} has the row ${existing} already)`;
  if (!rehearse) throw new NotTried('your own LinkTable has no rehearse().');
  async function registerTenant(organizationId: string) {
    const tenantId = await surroundings.tables.tenants?.find(organizationId);
    if (!tenantId) throw new NotTried(`${organizationId} has no row, and a rehearsal makes none.`);
    return { tenantId, created: false };
  }
  if (!(await rehearse(id, { ...surroundings, registerTenant })))
    throw new NotTried(`${id} gets no row. Pass a user_… or org_… of Clerk.`);
  if ((await find(id)) !== undefined) throw new Error(`The row of ${id} was not rolled back.`);
  return '(rolled back)';
}

/**
 * `<file of nextLink or identityLink> [user_…] [org_…]`: checks the keys and the tables with the environment of the application.
 */
async function main([file = '', ...ids]: readonly string[]): Promise<void> {
  await check('CLERK_SECRET_KEY and CLERK_JWT_KEY', checkKeys);
  await check('the signing secret of the webhook', checkSecrets);
  const found: Configuration[] = [];
  created.subscribe((message) => {
    if (isConfiguration(message)) found.push(message);
  });
  await import(pathToFileURL(path.resolve(file)).href);
  const configuration = found.at(-1);
  if (!configuration) throw new Error(`${file} calls neither nextLink() nor identityLink().`);
  const { users, tenants } = configuration.tables;
  for (const [name, table, prefix] of [
    ['users', users, 'user_'],
    ['organizations', tenants, 'org_'],
  ] as const) {
    const id = ids.find((each) => each.startsWith(prefix)) ?? `${prefix}doctor_${randomUUID()}`;
    if (table) await check(`a registration of ${name}`, () => checkTable(table, id, configuration));
  }
}

void main(process.argv.slice(2))
  .catch((error: unknown) => {
    console.log('FAILURE ', error instanceof Error ? error.message : error);
    process.exitCode = 1;
  })
  // Ends although the pool of the application has open connections.
  .finally(() => process.exit());
