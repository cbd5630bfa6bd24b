import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Node, ObjectLiteralElementLike } from 'typescript';

type TypeScript = typeof import('typescript');

/** Returns the TypeScript of the application, or the one of `npx -p typescript@6`. TypeScript 7 has no stable JavaScript API. */
export function loadTypeScript(application: string): TypeScript | undefined {
  const ofPath = (process.env['PATH'] ?? '').split(path.delimiter).map((bin) => path.join(bin, '../..'));
  for (const folder of [application, ...ofPath])
    try {
      const found: TypeScript = createRequire(path.join(folder, 'package.json'))('typescript');
      if ('createSourceFile' in found) return found;
    } catch {}
  return undefined;
}

const SKIPPED = /^(?:\..*|node_modules|dist|build|coverage|generated|tests?|__tests__|e2e|scripts)$/;
/** Tests, scripts and declarations, which are not a part of the running application. */
const OTHER = /(?:^|[.])(?:test|spec|stories|d|seed)\.\w+$/;

/** Returns the files in a folder whose name matches. */
export function filesIn(folder: string, name: RegExp): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) return SKIPPED.test(entry.name) ? [] : filesIn(file, name);
    return entry.isFile() && name.test(entry.name) && !OTHER.test(entry.name) ? [file] : [];
  });
}

/** A call of `prismaTable` or `drizzleTable`. */
interface Table {
  readonly isPrisma: boolean;
  /** The model of Prisma, or the variable of the Drizzle table. */
  readonly name: string;
  readonly clerkId: string;
  readonly isClaiming: boolean;
  readonly register: 'register' | 'registerTenant';
}

const INSERTS = /^(?:create|createMany|createManyAndReturn|upsert|insert)$/;
const UPDATES = /^update(?:Many|ManyAndReturn)?$/;
const READS = /^(?:find(?:Unique|First)(?:OrThrow)?|findMany|count)$/;
const COMPARISONS = /^(?:eq|inArray)$/;
const GUARDS = /^(?:guard|guardTenant|guardAction)$/;
const LOOKUPS = /^(?:requireUser|getUser|getTenant|register|registerTenant)$/;
const ACCEPTED = /^\s*\{?\/[/*] identity-link: \S/;

/** Returns what in the sources below a folder goes past the link, with its place. A person judges it. */
export function findUnlinked(ts: TypeScript, root: string): string[] {
  const sources = filesIn(root, /\.[cm]?[jt]sx?$/).map((file) =>
    ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true),
  );
  const some = (node: Node, matches: (node: Node) => boolean): boolean =>
    matches(node) || ts.forEachChild(node, (child) => some(child, matches) || undefined) === true;
  /** Returns the last names in an expression such as `prisma.user.create`. */
  function namesOf(node: Node | undefined): [owner: string, name: string] {
    if (node && ts.isPropertyAccessExpression(node)) return [namesOf(node.expression)[1], node.name.text];
    return ['', node && (ts.isIdentifier(node) || ts.isStringLiteralLike(node)) ? node.text : ''];
  }
  const isCallOf = (names: RegExp) => (node: Node) =>
    ts.isCallExpression(node) && names.test(namesOf(node.expression)[1]);
  const keyOf = ({ name }: ObjectLiteralElementLike) =>
    name && (ts.isIdentifier(name) || ts.isStringLiteralLike(name)) ? name.text : '';
  const valueIn = (node: Node | undefined, key: string): Node | undefined => {
    const found =
      node && ts.isObjectLiteralExpression(node) && node.properties.find((each) => keyOf(each) === key);
    return found && ts.isPropertyAssignment(found) ? found.initializer : found || undefined;
  };
  /** Returns true if a node contains a value for the column that is not null. */
  const sets = (node: Node | undefined, column: string) =>
    node !== undefined &&
    some(
      node,
      (each) =>
        ts.isObjectLiteralElementLike(each) &&
        keyOf(each) === column &&
        !(ts.isPropertyAssignment(each) && each.initializer.kind === ts.SyntaxKind.NullKeyword),
    );
  /** Returns true if the code runs for a user who has a row: in a guard, or beside a lookup or a registration. */
  const isGuarded = (node: Node): boolean =>
    isCallOf(GUARDS)(node) ||
    (ts.isFunctionLike(node) && some(node, isCallOf(LOOKUPS))) ||
    (node.parent && isGuarded(node.parent));

  const tables: Table[] = [];
  for (const source of sources)
    some(source, (node) => {
      if (!ts.isCallExpression(node) || !isCallOf(/^(?:prisma|drizzle)Table$/)(node)) return false;
      const [, name, options] = node.arguments;
      const [, clerkId] = namesOf(valueIn(options, 'clerkId'));
      tables.push({
        isPrisma: name !== undefined && ts.isStringLiteralLike(name),
        name: namesOf(name)[1],
        clerkId,
        isClaiming: valueIn(options, 'claim') !== undefined,
        register: valueIn(options, 'kind') ? 'registerTenant' : 'register',
      });
      return false;
    });

  function problemOf(node: Node, table: Table): string | undefined {
    if (!ts.isCallExpression(node)) return undefined;
    const [owner, method] = namesOf(node.expression);
    const [first, second] = node.arguments;
    const { isPrisma, name, clerkId, isClaiming, register } = table;
    const isOfTable = isPrisma ? owner === name : namesOf(first)[1] === name;
    // The values of Drizzle are in the call that follows: `db.insert(users).values(…)`.
    const data = isPrisma ? valueIn(first, 'data') : node.parent.parent;
    if (isOfTable && INSERTS.test(method)) {
      const isOpen = !data || !some(data, ts.isObjectLiteralExpression) || some(data, ts.isSpreadAssignment);
      const isEarly = isClaiming && !isOpen && !sets(data, clerkId);
      return isEarly ? undefined : `inserts a row of ${name}. Call ${register}(), and make it an update.`;
    }
    if (isOfTable && UPDATES.test(method) && sets(data, clerkId))
      return `sets ${clerkId}, as ${register}() does. Remove it.`;
    const isRead = isPrisma
      ? isOfTable && READS.test(method) && sets(valueIn(first, 'where'), clerkId)
      : COMPARISONS.test(method) &&
        [first, second].some((each) => namesOf(each).join('.') === `${name}.${clerkId}`);
    if (!isRead || isGuarded(node)) return undefined;
    return `reads by ${clerkId}, and finds nothing before the first request. Use getUser() or ${register}().`;
  }

  const found = sources.flatMap((source) => {
    const [lines, problems]: [string[], string[]] = [source.text.split('\n'), []];
    some(source, (node) => {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
      if (ACCEPTED.test(lines[line - 1] ?? '')) return false;
      for (const table of tables) {
        const text = problemOf(node, table);
        if (text) problems.push(`${path.relative(root, source.fileName)}:${line + 1}: ${text}`);
      }
      return false;
    });
    return problems;
  });
  return tables.length > 0
    ? found
    : ['No call of prismaTable or drizzleTable. Run clerk-identity-link init.'];
}
