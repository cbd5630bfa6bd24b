import { createPublicKey, randomUUID } from 'node:crypto';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { fieldsOf } from '../../../lib/core/values';
import { type Configuration, created, type LinkTable, notTried, signingSecrets } from './configuration';

const isConfiguration = (message: unknown): message is Configuration => 'tables' in fieldsOf(message);

async function check(name: string, run: () => Promise<unknown>): Promise<void> {
  try {
    console.log('ok       ', name, (await run()) ?? '');
  } catch (error) {
    const isTried = fieldsOf(error)['name'] !== 'NotTried';
    if (isTried) process.exitCode = 1;
    const { message, cause } = error instanceof Error ? error : { message: error, cause: undefined };
    // The messages of Prisma end with the cause. Those of Drizzle are the statement.
    const [reason] = `${cause instanceof Error ? cause.message : message}`.trim().split('\n').slice(-1);
    console.log(isTried ? 'FAILURE  ' : 'not tried', `${name}: ${reason}`);
  }
}

async function checkKeys() {
  const { CLERK_SECRET_KEY, CLERK_API_URL, CLERK_JWT_KEY } = process.env;
  if (!CLERK_SECRET_KEY) throw new Error('CLERK_SECRET_KEY is not set.');
  const response = await fetch(`${CLERK_API_URL || 'https://api.clerk.com'}/v1/jwks`, {
    headers: { authorization: `Bearer ${CLERK_SECRET_KEY}` },
    signal: AbortSignal.timeout(10_000),
  });
  if (response.status !== 200) throw new Error(`Clerk rejects CLERK_SECRET_KEY (${response.status}).`);
  const { keys }: { keys: { n?: string }[] } = await response.json();
  const pem = CLERK_JWT_KEY?.replaceAll('\\n', '\n');
  if (pem && !keys.some(({ n }) => n === createPublicKey(pem).export({ format: 'jwk' }).n))
    throw new Error('CLERK_JWT_KEY is not a key of the instance of CLERK_SECRET_KEY.');
}

async function checkSecrets() {
  if (signingSecrets().length === 0)
    throw notTried('CLERK_WEBHOOK_SIGNING_SECRET is not set. Only a webhook needs it.');
}

async function checkTable(table: LinkTable, id: string, configuration: Configuration): Promise<string> {
  const existing = await table.find(id);
  if (existing !== undefined) return `(${id} has the row ${existing} already)`;
  async function registerTenant(organizationId: string) {
    const tenantId = await configuration.tables.tenants?.find(organizationId);
    if (!tenantId) throw notTried(`${organizationId} has no row, and a rehearsal makes none.`);
    return { tenantId, created: false };
  }
  const isInserted = await table.rehearse?.(id, { ...configuration, registerTenant });
  if (isInserted === undefined) throw notTried('your own LinkTable has no rehearse().');
  if (!isInserted) throw notTried(`${id} gets no row. Pass a user_… or org_… of Clerk.`);
  if ((await table.find(id)) !== undefined) throw new Error(`The row of ${id} was not rolled back.`);
  return '(rolled back)';
}

const [file = '', ...ids] = process.argv.slice(2);
const found: Configuration[] = [];
created.subscribe((message) => {
  if (isConfiguration(message)) found.push(message);
});

// `<file of nextLink or identityLink> [user_…] [org_…]`: checks the keys and the tables with the environment of the application.
await check('CLERK_SECRET_KEY and CLERK_JWT_KEY', checkKeys);
await check('the signing secret of the webhook', checkSecrets);
await check(file, async () => {
  await import(pathToFileURL(path.resolve(file)).href);
  if (found.length === 0) throw new Error('calls neither nextLink() nor identityLink().');
});
const configuration = found.at(-1);
for (const name of ['users', 'tenants'] as const) {
  const [table, prefix] = [configuration?.tables[name], name === 'users' ? 'user_' : 'org_'];
  const id = ids.find((each) => each.startsWith(prefix)) ?? `${prefix}doctor_${randomUUID()}`;
  if (configuration && table)
    await check(`a registration of ${name}`, () => checkTable(table, id, configuration));
}
// The pool of the application may have open connections.
process.exit();
