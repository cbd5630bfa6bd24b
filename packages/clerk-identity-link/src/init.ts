import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { SourceFile, Type, TypeChecker } from 'typescript';
import { modelOf, readSources, rootOf, type TypeScript, textOf, typeIn } from './project';

/** Returns the values that a module declares and exports. */
function exportsOf(ts: TypeScript, checker: TypeChecker, source: SourceFile) {
  const module = checker.getSymbolAtLocation(source);
  return (module ? checker.getExportsOfModule(module) : []).flatMap((symbol) => {
    const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    if (target.valueDeclaration?.getSourceFile() !== source) return [];
    return { file: source.fileName, name: symbol.name, type: checker.getTypeOfSymbol(target) };
  });
}
type Export = ReturnType<typeof exportsOf>[number];

/** Returns the types of a row, of a new row, and of the values of unique columns, for a delegate of Prisma or a table of Drizzle. */
function rowsOf(checker: TypeChecker, type: Type) {
  const model = modelOf(checker, type);
  const operations = typeIn(checker, model, 'operations');
  const data = typeIn(checker, operations, 'createManyAndReturn', 'args', 'data');
  const unique = typeIn(checker, operations, 'findUnique', 'args', 'where');
  const newRow = data?.isUnion() ? data.types.find((each) => !checker.isArrayType(each)) : data;
  if (model) return { row: typeIn(checker, model, 'payload', 'scalars'), newRow, unique };
  const row = typeIn(checker, type, '$inferSelect');
  return row && { row, newRow: typeIn(checker, type, '$inferInsert'), unique: row };
}

/** Models that hold the users or organizations themselves. They come before others with a column for their ids. */
const USERS = /^(?:user|account|member|profile)s?(?:table)?$/i;
const TENANTS = /^(?:org|organi[sz]ation|tenant|workspace|team|compan(?:y|ie))s?(?:table)?$/i;

/** Returns an expression for a column of a new row, by the name of the column. `tsc` rejects what Clerk does not have. */
function expressionFor(column: string, isTenant: boolean): string {
  if (/email/i.test(column)) return "verifiedEmail ?? found.id + '@example.invalid'"; // often unique
  return column === 'name' && !isTenant ? "found.fullName ?? ''" : `found.${column}`;
}

/** Returns the options of the table of a model, or nothing if the model has no unique column for Clerk's id. */
function linksOf(ts: TypeScript, checker: TypeChecker, { file, name: model, type }: Export) {
  const { row, newRow, unique } = rowsOf(checker, type) ?? {};
  const isText = (name: string) =>
    ((typeIn(checker, unique, name)?.getNonNullableType().flags ?? 0) & ts.TypeFlags.StringLike) !== 0;
  const required = (newRow?.getProperties() ?? []).flatMap(({ name, flags }) =>
    flags & ts.SymbolFlags.Optional ? [] : name,
  );
  // An `id` that has no default comes from the application: it is the id of Clerk.
  const isOwn = (name: string) => name === 'id' && USERS.test(model) && required.includes(name);
  const names = (row?.getProperties() ?? []).map(({ name }) => name);
  const clerkId = names.find((name) => isText(name) && (/clerk/i.test(name) || isOwn(name)));
  if (!clerkId) return [];
  const id = names.find((name) => name === 'id') ?? names.find((name) => /id$/i.test(name)) ?? clerkId;
  const isTenant = TENANTS.test(model) || /org/i.test(clerkId);
  const values = required
    .filter((name) => name !== clerkId)
    .map((name) => `      ${name}: ${expressionFor(name, isTenant)},`);
  const helpers = values.some((value) => value.includes('verifiedEmail')) ? ', { verifiedEmail }' : '';
  const lines = [
    ...(isTenant ? ["    kind: 'tenant',"] : []),
    `    id: '${id}',`,
    `    clerkId: '${clerkId}',`,
    ...(values.length > 0 ? [`    columns: (found${helpers}) => ({`, ...values, '    }),'] : []),
  ];
  return [{ file, model, clerkId, lines, isTenant, isNamed: (isTenant ? TENANTS : USERS).test(model) }];
}

const NAMES = 'guard, guardTenant, guardAction, getUser, requireUser, getTenant, register, webhook';

/** Writes the module that configures the link, and prints what the types of the application reject in it. */
export function init(ts: TypeScript, application: string): void {
  const { checker, sources } = readSources(ts, application);
  const exported = sources.flatMap((source) => exportsOf(ts, checker, source));
  const having = (property: string) => exported.filter(({ type }) => type.getProperty(property));
  const [prisma] = having('$transaction');
  const database = prisma ?? having('$with')[0];
  if (!database) throw new Error('No module exports a generated Prisma client or a Drizzle database.');
  const delegates = database.type
    .getProperties()
    .map((property) => ({ ...database, name: property.name, type: checker.getTypeOfSymbol(property) }));
  const links = (prisma ? delegates : having('$inferInsert')).flatMap((model) => linksOf(ts, checker, model));
  const ordered = links.toSorted((one, other) => Number(other.isNamed) - Number(one.isNamed));
  const chosen = [false, true].flatMap((kind) => ordered.find(({ isTenant }) => isTenant === kind) ?? []);
  for (const { model, clerkId } of links.filter((link) => !chosen.includes(link)))
    console.log(`Not linked: ${model}, which has ${clerkId} too.`);
  if (chosen[0]?.isTenant !== false)
    throw new Error("No model of users has a unique column for Clerk's id. Add one, or see README.md.");

  const folder = existsSync(path.join(application, 'src')) ? 'src/lib' : 'lib';
  const file = path.join(application, folder, 'identity.ts');
  const own = [path.resolve(application), rootOf(application)];
  const importOf = (from: string, name: string) => {
    const manifest = ts.findConfigFile(path.dirname(from), ts.sys.fileExists, 'package.json') ?? '';
    const relative = `./${path.relative(path.dirname(file), from)}`.replaceAll(path.sep, '/');
    const specifier = own.includes(path.dirname(manifest))
      ? relative.replace('./..', '..').replace(/\.[cm]?[jt]sx?$/, '')
      : JSON.parse(textOf(manifest)).name;
    return `import ${name === 'default' ? 'db' : `{ ${name} }`} from '${specifier}';`;
  };
  const [table, store] = prisma ? ['prismaTable', 'prisma'] : ['drizzleTable', 'drizzle'];
  const getter = `() => ${database.name.replace('default', 'db')}`;
  const text = `${[
    "import { nextLink } from 'clerk-identity-link/next';",
    `import { ${table} } from 'clerk-identity-link/${store}';`,
    importOf(database.file, database.name),
    ...(prisma ? [] : chosen.map((link) => importOf(link.file, link.model))),
    '',
    `export const { ${NAMES} } = nextLink({`,
    ...chosen.flatMap(({ model, isTenant, lines }) => [
      `  ${isTenant ? 'tenants' : 'users'}: ${table}(${getter}, ${prisma ? `'${model}'` : model}, {`,
      ...lines,
      '  }),',
    ]),
    '});',
  ].join('\n')}\n`;
  if (existsSync(file)) return void console.log(`Not overwritten: ${file}. It would be:\n${text}`);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
  console.log(`Wrote ${file}`);
  const written = readSources(ts, application, file);
  for (const { start, messageText } of written.program.getSemanticDiagnostics(...written.sources)) {
    const line = text.slice(0, start).split('\n').length;
    console.log(`Correct ${file}:${line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`);
  }
  console.log('Next: npx clerk-identity-link doctor');
}
