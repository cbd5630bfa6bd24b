import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';

/** Folder of the item. Its files have the layout of an application without `src/`. */
const ITEM = 'registry/identity-link';

/** Modules of lib/ that the item contains, by the file of the item. After `#`, only the statements that declare these names. */
const COPIES: Readonly<Record<string, readonly string[]>> = {
  'lib/identity-link/concurrency.ts': [
    'lib/concurrency/with-timeout.ts',
    'lib/errors/sql-state.ts',
    'lib/linking/links.ts#RETRYABLE_SQLSTATES,retryOnConflict',
  ],
  'lib/identity-link/http.ts': [
    'lib/http/error.ts',
    'lib/api/text.ts',
    'lib/http/body.ts',
    'lib/http/action-result.ts',
  ],
};

const IMPORT = /^import (?:type )?(?:\* as (?<all>\w+)|\{(?<names>[^}]*)\}) from '(?<from>.+)';$/;

/** Returns true if a statement at the top level of a module declares the name. */
const declares = (statement: string, name: string) =>
  new RegExp(`^(?:export )?(?:async )?(?:const|function|class|interface|type) ${name}\\b`, 'm').test(
    statement,
  );

/**
 * Returns the text of a file that is copied from modules of lib/. Drops imports between these modules. Throws if a module
 * imports another module of lib/, or if a name is missing.
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
      if (isLocal && files.includes(`${path.posix.join(path.posix.dirname(file), from)}.ts`)) continue;
      if (isLocal || from === '') throw new Error(`${file}: the item does not contain this import: ${line}`);
      // A namespace may be imported as a type in one module and as a value in another.
      if (!imports.has(from) || !line.startsWith('import type ')) imports.set(from, line);
    }
    bodies.push(body);
  }
  const sources = files.join(', ');
  return `${[`// Copied from ${sources} of identity-link.`, ...imports.values()].join('\n')}\n\n${bodies.join('\n\n')}\n`;
}

/** Returns the files of the item that are copied from lib/, by their path in the repository. */
export function copiedFiles(): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(COPIES).map(([file, modules]) => [path.posix.join(ITEM, file), copyModules(modules)]),
  );
}

/** Steps that shadcn prints after the installation. It can merge neither a Prisma schema nor a proxy.ts. */
const STEPS = `Next steps:
1. Prisma client: lib/identity-link/prisma.ts exports the prisma of lib/prisma.ts. Change its line if your client is elsewhere.
2. Schema: if your Prisma schema is a single file, append prisma/identity-link.prisma to it and delete the fragment.
   Then run: npx prisma generate && npx prisma migrate deploy
3. proxy.ts or middleware.ts: run clerkMiddleware({ jwtKey: process.env.CLERK_JWT_KEY }) for your guarded routes and /auth/v1/register.
   Do not call auth.protect() for /auth/v1/register and /webhooks/idp/v1/user-created.
4. Set CLERK_JWT_KEY (the PEM public key) and CLERK_WEBHOOK_SIGNING_SECRET.
5. Clerk: add the webhook endpoint https://<your domain>/webhooks/idp/v1/user-created for user.created.`;

const DESCRIPTION =
  'Gives each Clerk user one internal id, exactly once: guard, registration and webhook over the Prisma client of the application.';

/** Returns the item without the contents of its files, as registry.json contains it. */
function item() {
  const paths = readdirSync(ITEM, { recursive: true, encoding: 'utf8' }).filter((file) =>
    statSync(path.join(ITEM, file)).isFile(),
  );
  const files = paths
    .map((file) => file.replaceAll(path.sep, '/'))
    .sort()
    // shadcn puts a target into src/ if the application has that folder, unless the target starts with `~/`.
    .map((file) => ({
      path: `${ITEM}/${file}`,
      type: 'registry:file',
      target: file.replace(/^prisma/, '~/prisma'),
    }));
  return {
    name: 'identity-link',
    type: 'registry:item',
    title: 'Identity link',
    description: DESCRIPTION,
    files,
    docs: STEPS,
  };
}

const toText = (value: object) => `${JSON.stringify(value, null, 2)}\n`;

/** Returns registry.json, which lists the items. */
export const registryIndex = (): string =>
  toText({
    $schema: 'https://ui.shadcn.com/schema/registry.json',
    name: 'identity-link',
    homepage: 'docs/existing-app.md',
    items: [item()],
  });

/** Returns the item with the contents of its files. An installation from this text needs no registry. */
export function builtItem(): string {
  const { files, ...rest } = item();
  const copies = copiedFiles();
  const withContent = files.map((file) => ({
    ...file,
    content: copies.get(file.path) ?? readFileSync(file.path, 'utf8'),
  }));
  return toText({ $schema: 'https://ui.shadcn.com/schema/registry-item.json', ...rest, files: withContent });
}
