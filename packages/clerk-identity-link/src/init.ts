import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Field, getSchema, type Model } from '@mrleebo/prisma-ast';
import { filesIn } from './sources';

const textOf = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');

/** Returns the folder of the workspaces that contain an application, or its own folder. */
export function rootOf(application: string): string {
  const isRoot = (folder: string) =>
    existsSync(path.join(folder, 'pnpm-workspace.yaml')) ||
    textOf(path.join(folder, 'package.json')).includes('"workspaces"');
  const parents = ['.', '..', '../..', '../../..'].map((parent) => path.resolve(application, parent));
  return parents.find(isRoot) ?? path.resolve(application);
}

/** Returns an expression for a column of a new row, by the name of the column. */
function expressionFor(column: string, isTenant: boolean): string {
  if (/email/i.test(column)) return "verifiedEmail ?? found.id + '@example.invalid'"; // often unique
  return column === 'name' && !isTenant ? "found.fullName ?? ''" : `found.${column}`;
}

/** Returns a call of `prismaTable` for a model, or undefined if it has no unique column for Clerk's id. */
function tableFor(model: Model, types: readonly string[]) {
  const fields = model.properties.filter((property): property is Field => property.type === 'field');
  const has = ({ attributes = [] }: Field, ...names: string[]) =>
    attributes.some(({ name }) => names.includes(name));
  const clerkId = fields.find((field) => has(field, 'unique') && /clerk/i.test(field.name));
  const id = fields.find((field) => has(field, 'id'));
  if (!clerkId || !id) return undefined;
  const isTenant = /org|tenant|workspace|team|compan/i.test(`${model.name} ${clerkId.name}`);
  const values = fields
    .filter((field) => !field.optional && !field.array && !has(field, 'id', 'default', 'updatedAt'))
    .filter(({ name, fieldType }) => name !== clerkId.name && !types.includes(String(fieldType)))
    .map(({ name }) => `${name}: ${expressionFor(name, isTenant)}`);
  const options = [
    ...(isTenant ? ["kind: 'tenant'"] : []),
    `id: '${id.name}', clerkId: '${clerkId.name}'`,
    ...(values.length > 0 ? [`columns: (found, { verifiedEmail }) => ({ ${values.join(', ')} })`] : []),
  ];
  const delegate = model.name.charAt(0).toLowerCase() + model.name.slice(1);
  return { isTenant, call: `prismaTable(() => prisma, '${delegate}', { ${options.join(', ')} }),\n` };
}

const OWN_MODEL = `model IdentityLink {
  userId  String @id @default(uuid(7)) @map("user_id") @db.Uuid
  clerkId String @unique @map("clerk_id")

  @@map("identity_links")
}
`;
const OWN_TABLE = "prismaTable(() => prisma, 'identityLink', { id: 'userId', clerkId: 'clerkId' }),\n";
const NAMES = 'guard, guardTenant, guardAction, getUser, requireUser, getTenant, register, webhook';

function write(file: string, ...lines: string[]): void {
  if (existsSync(file))
    return void console.log(`Not overwritten: ${file}. It would be:\n${lines.join('\n')}`);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, `${lines.join('\n')}\n`);
  console.log(`Wrote ${file}`);
}

/** Writes the module that configures the link. In a monorepo, the tables are in the package of the Prisma schema. */
export function init(application: string): void {
  const root = rootOf(application);
  const schemas = filesIn(root, /\.prisma$/);
  const [schema] = schemas;
  if (!schema)
    throw new Error(
      'There is no Prisma schema. With Drizzle, write lib/identity.ts yourself: see README.md.',
    );
  const blocks = schemas.flatMap((file) => getSchema(readFileSync(file, 'utf8')).list);
  const models = blocks.filter((block): block is Model => block.type === 'model');
  const tables = models.flatMap(
    (model) =>
      tableFor(
        model,
        models.map(({ name }) => name),
      ) ?? [],
  );
  const users = tables.find(({ isTenant }) => !isTenant)?.call ?? OWN_TABLE;
  const tenants = tables.find(({ isTenant }) => isTenant);
  const configuration = `{\n  users: ${users}${tenants ? `  tenants: ${tenants.call}` : ''}}`;
  const source = existsSync(path.join(application, 'src')) ? 'src/lib' : 'lib';
  const own = path.join(application, source, 'identity.ts');
  const ofTables = "import { prismaTable } from 'clerk-identity-link/prisma';";
  const ofNext = "import { nextLink } from 'clerk-identity-link/next';";
  const database = path.resolve(schema, '../..');
  if (database.startsWith(path.resolve(application)) || database === root) {
    const client = "import { prisma } from './prisma';";
    write(own, ofNext, ofTables, client, '', `export const { ${NAMES} } = nextLink(${configuration});`);
  } else {
    const core = "import { identityLink } from 'clerk-identity-link';";
    const client = "import { prisma } from './index';";
    const identity = `export const identity = identityLink(${configuration});`;
    write(path.join(database, 'identity.ts'), core, ofTables, client, '', identity);
    const { name } = JSON.parse(textOf(path.join(database, 'package.json')) || '{}');
    const imported = `import { identity } from '${name}/identity';`;
    write(own, ofNext, imported, '', `export const { ${NAMES} } = nextLink(identity);`);
    console.log(`If ${name} has "exports", add: "./identity": "./identity.ts"`);
  }
  if (users === OWN_TABLE) console.log(`Add this model to the Prisma schema, and migrate:\n${OWN_MODEL}`);
  console.log('Next: run tsc, correct what it names, and run: npx clerk-identity-link doctor');
}
