import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** What to change in the files of an application, and where. A step without places is done. */
export interface Step {
  readonly places: readonly string[];
  readonly lines: readonly string[];
}

interface File {
  /** Path relative to the application. */
  readonly name: string;
  readonly text: string;
}

const TABLES = {
  user: {
    names: ['users', 'ID', 'CLERK_ID', 'otherColumns'],
    item: 'identity-link-model',
    found: 'clerk.users.getUser(clerkId)',
    register: 'registerByIdentityProviderUserId(<id>)',
  },
  tenant: {
    names: ['tenants', 'TENANT_ID', 'ORGANIZATION_ID', 'otherTenantColumns'],
    item: 'identity-link-tenants-model',
    found: 'clerk.organizations.getOrganization({ organizationId: clerkId })',
    register: "register('tenant', <id>)",
  },
} as const;
type Kind = keyof typeof TABLES;

/** Returns what fills a column from Clerk, by its name. */
function fill(column: string, kind: Kind): string {
  if (/email/i.test(column))
    return `found.primaryEmailAddress?.verification?.status === 'verified'
      ? found.primaryEmailAddress.emailAddress : clerkId + '@example.invalid'`;
  if (/^(?:firstName|lastName)$/.test(column)) return `found.${column} ?? ''`;
  if (/^(?:username|slug)$/.test(column)) return `found.${column} ?? clerkId`; // often unique
  if (/name$/i.test(column)) return kind === 'user' ? "found.fullName ?? ''" : 'found.name';
  return /image|avatar|photo|picture|logo/i.test(column) ? 'found.imageUrl' : '<your value>';
}

const STATIC = 'html?|css|js(?!on)|jpe?g|webp|png|gif|svg|ttf|woff2?|ico|csv|docx?|xlsx?|zip|webmanifest';
export const MATCHER = [
  'export const config = { matcher: [',
  `  '/((?!_next|[^?]*\\\\.(?:${STATIC})).*)',`,
  "  '/__clerk/(.*)',",
  "  '/(api|trpc|<start of each guarded path>)(.*)',",
  '] };',
];

const SKIPPED = /^(?:\..*|node_modules|dist|coverage|generated)$/;
const READ = /\.(?:[cm]?[jt]sx?|prisma|sql)$|^(?:\.\.\/)*[^/]*(?:biome|eslint|prettier)[^/]*$/;
/** Tests, scripts and declarations, which are not a part of the running application. */
const OTHER = /(?:^|\/)(?:tests?|__tests__|e2e|scripts)\/|(?:^|[./])(?:test|spec|stories|d|seed)\.\w+$/;

const step = (places: readonly string[], ...lines: string[]): Step => ({ places, lines });
const textOf = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');

/** Reads the sources in a folder, and the configurations of linters and formatters. */
function readFiles(folder: string, application: string): File[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) return SKIPPED.test(entry.name) ? [] : readFiles(file, application);
    const name = path.relative(application, file);
    const isRead = entry.isFile() && READ.test(name) && !OTHER.test(name);
    return isRead ? [{ name, text: textOf(file) }] : [];
  });
}

/** Returns the files with this name, unless one of them has the text. */
function lacking(files: readonly File[], name: RegExp, text: RegExp): string[] {
  const named = files.filter((file) => name.test(file.name));
  return named.some((file) => text.test(file.text)) ? [] : named.map((file) => file.name);
}

/** Returns the matches of a pattern that are not in a comment, and have no line `// identity-link: <reason>` above them. */
const find = (files: readonly File[], pattern: RegExp) =>
  files.flatMap((file) =>
    Array.from(file.text.matchAll(pattern), (match) => {
      const before = file.text.slice(0, match.index);
      const place = `${file.name}:${before.split('\n').length}`;
      return { file, match, before, place };
    }).filter(({ before }) => !/\/\/ identity-link: .*\n.*$|(?:^|\n)\s*\*.*$|\/[/*].*$/.test(before)),
  );
type Found = ReturnType<typeof find>[number];
const placesOf = (found: readonly Found[]) => found.map(({ place }) => place);

/** Reads the models of the Prisma schema. */
function readModels(files: readonly File[]) {
  const models = find(files, /^model (\w+) \{\n([\s\S]*?)^\}/gm);
  const types = new Set(models.map(({ match }) => match[1]));
  return models.map(({ match: [, name = '', body = ''], place }) => {
    const keys = Array.from(body.matchAll(/^\s*@@(?:unique|id)\(\[\s*(\w+)\s*\]/gm), ([, column]) => column);
    const columns = Array.from(body.matchAll(/^\s*(\w+) +(\w+)(\[\]|\?)?(.*)/gm), (column) => {
      const [, name = '', type = '', modifier, attributes = ''] = column;
      const isUnique = /@(?:unique|id)\b/.test(attributes) || keys.includes(name);
      const hasValue = modifier || types.has(type) || /@(?:default|updatedAt)\b/.test(attributes);
      const inDatabase = /@map\("(\w+)"/.exec(attributes)?.[1] ?? name;
      return { name, inDatabase, isUnique, isNullable: modifier === '?', isRequired: !hasValue };
    });
    const unique = columns.filter((column) => column.isUnique);
    const clerk = unique.find((column) => /clerk(?!.*(?:member|invit|session))/i.test(column.name));
    const id = unique.find((column) => column !== clerk && !/email|slug/i.test(column.name));
    const isTenant = /org|tenant|workspace|team|compan/i.test(`${name} ${clerk?.name}`);
    const delegate = name.charAt(0).toLowerCase() + name.slice(1);
    return { name, delegate, place, columns, clerk, id, isTenant };
  });
}
type Model = ReturnType<typeof readModels>[number];
type Column = Model['columns'][number];

/** Reads what an application consists of. Runs none of its code. */
function readHost(application: string) {
  const parents = ['../../..', '../..', '..', ''].map((parent) => path.resolve(application, parent));
  const isWorkspace = (folder: string) =>
    existsSync(`${folder}/pnpm-workspace.yaml`) || textOf(`${folder}/package.json`).includes('"workspaces"');
  const root = parents.find(isWorkspace) ?? path.resolve(application);
  const all = readFiles(root, path.resolve(application));
  const files = all.filter(({ name }) => !name.includes('lib/identity-link/'));
  const isInstalled = (item: string) =>
    all.some(({ name }) => name.replace(/^src\//, '') === `lib/identity-link/${item}.ts`);
  const link = files.find(({ name }) => /^(?:src\/)?lib\/identity-link\.config\.ts$/.test(name));
  const config = [link, ...files].find((file) => file?.text.includes('export const CLERK_ID'));
  return { all, files, isInstalled, link, config, models: readModels(files) };
}
type Host = ReturnType<typeof readHost>;

/** What an earlier version left. */
const leftovers = ({ all }: Host): Step =>
  step(
    [
      ...lacking(all, /^(?:src\/)?lib\/identity-link\/linking\/links\.ts$/, /identity-link\.config/),
      ...lacking(all, /^(?:src\/)?lib\/identity-link\/(?:user-id|log|concurrency\/.*)\.ts$/, /(?!)/),
      ...lacking(all, /^(?:src\/)?app\/auth\/v1\/register\/route\.ts$/, /409/),
    ],
    'These files are of an earlier version. Before you remove them, move what you wrote to lib/identity-link.config.ts:',
    'of links.ts, the import, users, ID, CLERK_ID, otherColumns, and your part of insertLink (now insert); of log.ts, your part',
    'of logRequest (now logError). With app/auth/v1/register, any signed-in user links any Clerk user and reads the internal id.',
  );

/** Where the configuration is missing. In a monorepo, the package of the Prisma schema has it, and the applications export it. */
function configuration({ link, config, models }: Host): Step {
  const own = 'lib/identity-link.config.ts';
  const [folder] = /^(?:\.\.\/)+(?:(?!prisma\b)[^/:]+\/)*/.exec(models[0]?.place ?? '') ?? [];
  return step(
    config && link ? [] : [config || !folder ? own : `${folder}identity-link.ts`],
    'The configuration does not exist.',
    folder
      ? `It is ${folder}identity-link.ts, which "exports" of that package needs, and ${own} exports it again.`
      : 'Add identity-link-config.',
  );
}

/** Returns the lines of the configuration for the table of the application that has a unique column for Clerk's id. */
function propose({ files, models }: Host, kind: Kind): string[] {
  const { names, found, item } = TABLES[kind];
  const own = models.find((each) => each.clerk && each.id && each.isTenant === (kind === 'tenant'));
  if (!own) return [`No model has its own id and a unique "clerk" column. Name yours, or add ${item}.`];
  const values = own.columns
    .filter(({ name, isRequired }) => isRequired || /^email(?:Address)?$/i.test(name))
    .filter((column) => column !== own.clerk && column !== own.id)
    .map(({ name }) => `${name}: ${fill(name, kind)}`);
  return [
    `export const ${names[0]} = () => prisma.${own.delegate}; // of ${placesOf(find(files, /new PrismaClient\(/g)).join(', ')}`,
    `export const ${names[1]} = '${own.id?.name}';`,
    `export const ${names[2]} = '${own.clerk?.name}';`,
    `export async function ${names[3]}(clerkId: string) {`,
    '  const { createClerkClient } = await import("@clerk/backend"); // a package that your package.json needs',
    '  const { CLERK_SECRET_KEY: secretKey, CLERK_API_URL: apiUrl } = process.env;',
    '  const clerk = createClerkClient({ secretKey, apiUrl });',
    `  const found = await ${found}.catch((error) => {`,
    '    if (error.status === 404) return undefined;',
    '    throw error;',
    '  });',
    `  return found && { ${values.join(', ')} };`,
    '}',
  ].slice(0, values.length > 0 ? undefined : 3);
}

/** What the configuration says about a table that the schema does not have. */
function table(host: Host, kind: Kind): Step[] {
  const { config, files, models } = host;
  const isUsed = kind === 'user' || host.isInstalled('guard-tenant');
  if (!config || models.length === 0 || !isUsed) return [];
  const { names } = TABLES[kind];
  const read = (name: string) =>
    find([config], new RegExp(`export const ${name} = .*?(\\w+)['"]?;?(?: *//.*)?$`, 'gm'))[0];
  const named = read(names[0]);
  const model = models.find(({ delegate }) => delegate === named?.match[1]);
  const [id, clerk] = [names[1], names[2]].map((name) =>
    model?.columns.find((column) => column.name === read(name)?.match[1]),
  );
  const required = model?.columns.filter(({ isRequired }) => isRequired).map(({ name }) => name);
  const missing = required?.filter(
    (name) => name !== clerk?.name && !new RegExp(`\\b${name}\\b`).test(config.text),
  );
  const migrations = files.filter(({ name }) => name.endsWith('migration.sql'));
  const isMigrated = migrations.some(({ text }) => text.includes(`"${clerk?.inDatabase}"`));
  const problems = [
    model ? '' : `${names[0]} is not a model of the Prisma schema.`,
    model && !clerk?.isUnique ? `${names[2]} is not a unique column of ${model.name}.` : '',
    model && (!id?.isUnique || id === clerk) ? `${names[1]} is not an id of your own.` : '',
    missing?.length && !config.text.includes('...')
      ? `${names[3]} does not fill ${missing} of a new ${model?.name}.`
      : '',
    kind === 'user' && config.text.includes('@clerk/nextjs') ? 'Use @clerk/backend, not @clerk/nextjs.' : '',
    clerk && migrations.length > 0 && !isMigrated ? `No migration creates the column ${clerk.name}.` : '',
  ].filter(Boolean);
  const places = [named?.place ?? config.name, ...(model ? [model.place] : [])];
  return [
    step(problems.length > 0 ? places : [], problems.join(' '), ...propose(host, kind)),
    ...(model && clerk ? inserts(host, kind, model, clerk) : []),
  ];
}

/** Which code of the application inserts rows of the table, instead of the items. */
function inserts({ files, config }: Host, kind: Kind, model: Model, clerk: Column): Step[] {
  const { register } = TABLES[kind];
  const calls = `\\.${model.delegate}\\s*\\.(?:create|createMany|createManyAndReturn|upsert)\\(`;
  const found = find(files, new RegExp(calls, 'g')).filter(({ file }) => file !== config);
  const isEarly = ({ file, match }: Found) => {
    const [statement = ''] = file.text.slice(match.index).split(/\}\s*\)/);
    const isOpen = /data: *\{/.test(statement) && !new RegExp(`\\.{3}|\\b${clerk.name}\\b`).test(statement);
    const isMadeUp = new RegExp(`\\b${clerk.name}: *(?:null|['"\`])`).test(statement);
    return kind === 'user' && ((clerk.isNullable && isOpen) || isMadeUp);
  };
  const late = found.filter((call) => !isEarly(call));
  const email = model.columns.find(({ name }) => /email/i.test(name))?.name ?? '<a column of both>';
  const early = clerk.isNullable ? `${clerk.name}: null` : `NOT: { ${clerk.name}: { startsWith: 'user_' } }`;
  return [
    step(
      late.map(({ file, place }) =>
        /['"](?:user|organization)\.created['"]/.test(file.text)
          ? `${place}: before it, call ${register}, for the events created and updated, and make it an update.`
          : `${place}: call ${register} instead, which returns the internal id.`,
      ),
      `They insert rows of ${model.name}. The function is in lib/identity-link/register.ts.`,
    ),
    step(
      config?.text.includes('updateMany') ? [] : placesOf(found.filter(isEarly)),
      `A row of ${model.name} exists before the sign-up. In the configuration, insert does not take it over.`,
      `const where = { ${email}: { in: [row.${email}], mode: 'insensitive' as const }, ${early} };`,
      `const [data, select] = [{ ${clerk.name}: row.${clerk.name} }, { [ID]: true }];`,
      'const rows = await users().updateManyAndReturn({ where, data, select }); // insert returns these, if there are any',
    ),
  ];
}

/** Which webhook does not register the user. */
function webhook({ files }: Host): Step {
  const registers = /(?:registerByIdentityProviderUserId|receiveWebhook)\(/;
  const others = files.filter(({ name }) => !name.endsWith('app/auth/v1/register/route.ts'));
  return step(
    others.some(({ text }) => registers.test(text)) ? [] : placesOf(find(files, /['"]user\.created['"]/g)),
    'This webhook does not register the user.',
    `After the verification, call ${TABLES.user.register} of lib/identity-link/register.ts.`,
  );
}

/** Returns true if one of the patterns in a text of Next.js or Clerk matches a path. */
const isMatched = (text: string, url: string) =>
  Array.from(text.matchAll(/(['"`])(\/.*?)\1/g)).some(([, , pattern = '']) => {
    const source = pattern.replaceAll('\\\\', '\\').replaceAll(/\/:\w+[*+]/g, '(?:/.*)?');
    return new RegExp(`^${source.replaceAll(/\/:\w+/g, '/[^/]+')}/?$`).test(url);
  });

/** Whether the session file runs for the guarded routes, and does not reject their requests itself. */
function session({ files, isInstalled }: Host): Step[] {
  if (!isInstalled('guard')) return [];
  const name = /^(?:src\/)?(?:proxy|middleware)\.[jt]s$/;
  const paths = files
    .filter(
      (file) =>
        /^(?:src\/)?app\/.*route\.[jt]s$/.test(file.name) && file.text.includes('identity-link/guard'),
    )
    .map((file) => path.dirname(file.name.replace(/^(?:src\/)?app/, '')).replaceAll(/\/\(.*?\)/g, ''))
    .map((url) => url.replaceAll(/\[.*?\]+/g, 'a.css'));
  const missingIn = (pattern: RegExp, urls: readonly string[]) =>
    find(files, pattern).flatMap(({ file, place, match: [, list = ''] }) =>
      urls.filter((url) => name.test(file.name) && !isMatched(list, url)).map((url) => `${place} (${url})`),
    );
  const unused = lacking(files, name, /withIdentityLink/);
  const own = files.filter((file) => name.test(file.name) || !/(?:proxy|middleware)\.[jt]s$/.test(file.name));
  return [
    step(
      unused.length > 0 ? [...unused, ...placesOf(find(own, /\bclerkMiddleware\(/g))] : [],
      'The session file does not use withIdentityLink of lib/identity-link/middleware.',
      'Use it in this file in place of clerkMiddleware, or of your wrapper of it. It takes the same arguments.',
    ),
    step(
      [
        ...missingIn(/matcher:\s*(\[[\s\S]*?\n *\]|.*)/g, [...paths, '/__clerk/a.js']),
        ...missingIn(/\w*public\w*\s*=\s*createRouteMatcher\((\[[\s\S]*?\])\)[;\s]/gi, paths),
      ],
      'This list leaves out a path. Guarded paths are public routes, because guard itself responds with a 401. The matcher:',
      ...MATCHER,
    ),
  ];
}

/** Which linters and formatters would change the installed files. */
const linters = ({ all }: Host): Step =>
  step(
    ['biome.jsonc?', 'eslint.*', 'prettier.*'].flatMap((name) =>
      lacking(all, new RegExp(`^(?:\\.\\./)*\\.?${name}$`), /identity-link/),
    ),
    'These linters and formatters would change the items. Exclude lib/identity-link: by "!**/lib/identity-link" in files.includes',
    "of Biome, by globalIgnores(['**/lib/identity-link']) or ignorePatterns of ESLint, or by a line of .prettierignore.",
  );

/**
 * Returns what is left to change in the files of an application, in the order in which to do it. Reads the Prisma schema and
 * the sources of all workspaces as text, and changes nothing.
 */
export function findSteps(application: string): Step[] {
  const host = readHost(application);
  const steps = [leftovers(host), configuration(host), ...table(host, 'user'), ...table(host, 'tenant')];
  return [...steps, webhook(host), ...session(host), linters(host)].filter(({ places }) => places.length > 0);
}
