import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';

const CORE = 'registry/identity-link/lib/identity-link';
const CACHE = 'registry/identity-link-cache/lib/identity-link';

/**
 * A registry item is a set of source files that shadcn copies into an application. This object lists the files of items that
 * are copies of modules of lib/. Each key is the path of a file, and its value lists the modules. A list of names after `#`
 * selects the statements that declare these names.
 */
const COPIES: Readonly<Record<string, readonly string[]>> = {
  [`${CORE}/concurrency.ts`]: [
    'lib/concurrency/with-timeout.ts',
    'lib/errors/sql-state.ts',
    'lib/linking/links.ts#RETRYABLE_SQLSTATES,retryOnConflict',
  ],
  [`${CORE}/http.ts`]: [
    'lib/http/error.ts',
    'lib/api/text.ts',
    'lib/http/body.ts',
    'lib/http/action-result.ts',
  ],
  [`${CACHE}/circuit-breaker.ts`]: ['lib/concurrency/circuit-breaker.ts', 'lib/storage/kv-breaker.ts'],
  [`${CACHE}/user-id-cache.ts`]: ['lib/api/schemas.ts#InternalUserId', 'lib/linking/user-id-cache.ts'],
};

/** Modules of lib/ that another file of the item replaces, with the import path of this file. */
const REPLACED: ReadonlyMap<string, string> = new Map([['lib/storage/kv.ts', './kv']]);

const IMPORT = /^import (?:type )?(?:\* as (?<all>\w+)|\{(?<names>[^}]*)\}) from '(?<from>.+)';$/;

/** Returns true if a statement at the top level of a module declares the name. */
const declares = (statement: string, name: string) =>
  new RegExp(`^(?:export )?(?:async )?(?:const|function|class|interface|type) ${name}\\b`, 'm').test(
    statement,
  );

/**
 * Returns the text of a file that is copied from modules of lib/. Drops imports between these modules. Throws if a module
 * imports another module of lib/ that no file of the item replaces, or if a name is missing.
 */
function copyModules(modules: readonly string[]): string {
  const files = modules.map((module) => module.split('#')[0]);
  const imports = new Map<string, string>();
  const bodies: string[] = [];
  for (const module of modules) {
    const [file = '', names] = module.split('#');
    // Statements at the top level are separated by empty lines, and the lines inside of a statement are indented.
    const paragraphs = readFileSync(file, 'utf8')
      .trim()
      .split(/\n\n(?=\S)/);
    const statements = paragraphs.filter((paragraph) => !paragraph.startsWith('import '));
    for (const name of names?.split(',') ?? [])
      if (!statements.some((statement) => declares(statement, name)))
        throw new Error(`${file} does not declare ${name}.`);
    const copied = statements.filter(
      (statement) => names?.split(',').some((name) => declares(statement, name)) ?? true,
    );
    const body = copied.join('\n\n');
    for (const line of paragraphs.find((paragraph) => paragraph.startsWith('import '))?.split('\n') ?? []) {
      const { all, names: list = '', from = '' } = IMPORT.exec(line)?.groups ?? {};
      const identifiers =
        all === undefined ? list.split(',').map((each) => each.replace('type ', '').trim()) : [all];
      if (!identifiers.some((each) => new RegExp(`\\b${each}\\b`).test(body))) continue;
      const isLocal = from.startsWith('.');
      const imported = `${path.posix.join(path.posix.dirname(file), from)}.ts`;
      if (isLocal && files.includes(imported)) continue;
      const source = isLocal ? REPLACED.get(imported) : from;
      if (!source) throw new Error(`${file}: the item does not contain this import: ${line}`);
      // The copy imports each source once. An `import type` never replaces an import of values.
      if (!imports.has(source) || !line.startsWith('import type '))
        imports.set(source, line.replace(`'${from}'`, `'${source}'`));
    }
    bodies.push(body);
  }
  const sources = files.join(', ');
  return `${[`// Copied from ${sources} of identity-link.`, ...imports.values()].join('\n')}\n\n${bodies.join('\n\n')}\n`;
}

/** Returns the texts of the files in `COPIES`. The keys are the paths of the files in the repository. */
export function copiedFiles(): ReadonlyMap<string, string> {
  return new Map(Object.entries(COPIES).map(([file, modules]) => [file, copyModules(modules)]));
}

interface Item {
  readonly title: string;
  readonly description: string;
  /** Packages that the application may lack. shadcn installs the missing ones. */
  readonly dependencies?: readonly string[];
  /** Files of another item that this item also needs. */
  readonly shared?: readonly string[];
  /** Text that shadcn prints after the installation: the next steps. shadcn cannot merge a Prisma schema or a proxy.ts. */
  readonly docs: string;
}

const SCRIPTS = 'scripts/identity-link';
const DOCTOR = `node ${SCRIPTS}/doctor.mjs`;

/** The items by name. The folder of an item in registry/ has the layout of an application without `src/`. */
const ITEMS: Readonly<Record<string, Item>> = {
  'identity-link': {
    title: 'Identity link',
    description:
      'Gives each Clerk user one internal id, exactly once: guard, registration and webhook over the Prisma client of the application.',
    docs: `Next steps:
1. Prisma client: lib/identity-link/prisma.ts exports the prisma of lib/prisma.ts. If your client is elsewhere, change the export.
2. Schema: if your Prisma schema is a single file, append prisma/identity-link.prisma to it and delete prisma/identity-link.prisma.
   In both cases, run: npx prisma generate && npx prisma migrate deploy
3. proxy.ts or middleware.ts: run clerkMiddleware({ jwtKey: process.env.CLERK_JWT_KEY }) for your guarded routes and /auth/v1/register.
   Do not call auth.protect() for /auth/v1/register and /webhooks/idp/v1/user-created.
4. Set CLERK_JWT_KEY (the PEM public key) and CLERK_WEBHOOK_SIGNING_SECRET.
5. Clerk: add the webhook endpoint https://<your domain>/webhooks/idp/v1/user-created for user.created.`,
  },
  'identity-link-middleware': {
    title: 'Identity link: middleware',
    description:
      'Replaces clerkMiddleware in your proxy.ts or middleware.ts: passes jwtKey and does not protect the routes of identity-link.',
    docs: `Instead of step 3 of identity-link: in proxy.ts or middleware.ts, replace clerkMiddleware with withIdentityLink of lib/identity-link/middleware.ts. It takes the same arguments.`,
  },
  'identity-link-cache': {
    title: 'Identity link: cache',
    description:
      'Caches the internal ids for ten minutes in Vercel KV or Upstash Redis, behind a circuit breaker.',
    dependencies: ['@vercel/kv'],
    docs: `Set KV_REST_API_URL and KV_REST_API_TOKEN. lib/identity-link/user-id.ts now reads the cache first.`,
  },
  'identity-link-doctor': {
    title: 'Identity link: doctor',
    description:
      'Finds what is missing after the installation of identity-link, and prints the lines to add.',
    docs: `Run the doctor before and after you start the application: ${DOCTOR}`,
  },
  'identity-link-tests': {
    title: 'Identity link: tests',
    description: 'Tests identity-link in the running application, with the database of the application.',
    shared: [`registry/identity-link-doctor/${SCRIPTS}/application.mjs`],
    docs: `Start the application, then run: node --test ${SCRIPTS}/tests.mjs`,
  },
};

/** Names of the items. */
export const itemNames = Object.keys(ITEMS);

/** Returns an item without the contents of its files, as registry.json contains it. */
function itemOf(name: string) {
  const item = ITEMS[name];
  if (!item) throw new Error(`There is no item ${name}.`);
  const { title, description, dependencies, shared = [], docs } = item;
  const folder = `registry/${name}`;
  const own = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((file) => path.posix.join(folder, file.replaceAll(path.sep, '/')))
    .filter((file) => statSync(file).isFile());
  const copied = Object.keys(COPIES).filter((file) => file.startsWith(`${folder}/`));
  const files = [...new Set([...own, ...copied, ...shared])].sort().map((file) => ({
    path: file,
    type: 'registry:file',
    // shadcn puts a target into src/ if the application has that folder, unless the target starts with `~/`.
    target: file.replace(/^registry\/[^/]+\//, '').replace(/^(?=prisma|scripts)/, '~/'),
  }));
  return {
    name,
    type: 'registry:item',
    title,
    description,
    ...(dependencies ? { dependencies } : {}),
    files,
    docs,
  };
}

const toText = (value: object) => `${JSON.stringify(value, null, 2)}\n`;

/** Returns registry.json, which lists the items. */
export const registryIndex = (): string =>
  toText({
    $schema: 'https://ui.shadcn.com/schema/registry.json',
    name: 'identity-link',
    homepage: 'docs/existing-app.md',
    items: itemNames.map(itemOf),
  });

/** Returns an item with the contents of its files. An installation from this text needs no registry. */
export function builtItem(name: string): string {
  const { files, docs, ...rest } = itemOf(name);
  const copies = copiedFiles();
  const withContent = files.map((file) => ({
    ...file,
    content: copies.get(file.path) ?? readFileSync(file.path, 'utf8'),
  }));
  const $schema = 'https://ui.shadcn.com/schema/registry-item.json';
  return toText({ $schema, ...rest, files: withContent, docs });
}
