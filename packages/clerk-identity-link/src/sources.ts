import path from 'node:path';
import type { CallExpression, Declaration, Node, Type } from 'typescript';
import { modelOf, readSources, rootOf, type TypeScript, typeIn } from './project';

const TABLES = /^(?:prisma|drizzle)Table$/;
const LINKS = /^(?:nextLink|identityLink)$/;
const INSERTS = /^(?:create|createMany|createManyAndReturn|upsert|insert)$/;
const UPDATES = /^update(?:Many|ManyAndReturn)?$/;
const READS = /^(?:find(?:Unique|First)(?:OrThrow)?|eq)$/;
const LISTS = /^(?:findMany|count|inArray)$/;
/** The condition of an update or a deletion of Drizzle. */
const CHANGE = /\.(?:update|delete)\s*\([\s\S]*\.where$/;
const ACCEPTED = /^\s*\{?\/[/*] identity-link: \S/;

/** Returns what in the sources of an application goes past the link, with its place. It follows types, not names. */
export function findUnlinked(ts: TypeScript, application: string): string[] {
  const { checker, sources } = readSources(ts, application);
  /** The functions that `nextLink` and `identityLink` return, such as `guard` and `register`. */
  const lookups = new Set<Node | undefined>();
  const findings: string[] = [];

  const some = (node: Node, matches: (node: Node) => boolean): boolean =>
    matches(node) || ts.forEachChild(node, (child) => some(child, matches)) === true;
  function report(kind: 'FAILURE' | 'WARNING', node: Node, text: string): void {
    const source = node.getSourceFile();
    const { line } = source.getLineAndCharacterOfPosition(node.getStart());
    if (ACCEPTED.test(source.text.split('\n')[line - 1] ?? '')) return;
    findings.push(`${kind}   ${path.relative(rootOf(application), source.fileName)}:${line + 1}: ${text}`);
  }
  const typeAt = (node: Node | undefined, ...names: readonly string[]) =>
    node && typeIn(checker, checker.getTypeAtLocation(node), ...names);
  const textIn = (type: Type | undefined) => (type?.isStringLiteral() ? type.value : undefined);
  const ownerOf = (node: Node) =>
    ts.isPropertyAccessExpression(node) || ts.isElementAccessExpression(node) ? node.expression : undefined;
  /** Returns the symbol of a member such as `prisma.user`, or of what an imported name stands for. */
  function symbolOf(node: Node) {
    const member = ts.isElementAccessExpression(node) ? node.argumentExpression : node;
    const symbol = checker.getSymbolAtLocation(member);
    return symbol && symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  }
  const nameOf = ({ expression }: CallExpression) => symbolOf(expression)?.name ?? '';
  /** Returns the declaration of a column in a delegate of Prisma or a table of Drizzle. Undefined for another type. */
  function columnIn(type: Type | undefined, name: string): Declaration | undefined {
    const rows = typeIn(checker, type && modelOf(checker, type), 'payload', 'scalars');
    const columns = rows ?? (typeIn(checker, type, '$inferInsert') && type);
    return columns?.getProperty(name)?.declarations?.[0];
  }
  /** Returns true if rows of this type have a value of the column. With `isSure`, one that may be missing does not count. */
  function sets(type: Type | undefined, name: string, isSure: boolean): boolean {
    if (!type || type.flags & ts.TypeFlags.Any) return !isSure;
    if (type.isUnion()) return type.types.some((each) => sets(each, name, isSure));
    const [element, property] = [type.getNumberIndexType(), type.getProperty(name)];
    if (element) return sets(element, name, isSure);
    if (!property || (isSure && property.flags & ts.SymbolFlags.Optional)) return false;
    return (checker.getTypeOfSymbol(property).getNonNullableType().flags & ts.TypeFlags.Never) === 0;
  }
  /** Returns true if a filter of Prisma has one or more values of the column. */
  function filters(where: Type | undefined, name: string): boolean {
    const value = typeIn(checker, where, name)?.getNonNullableType();
    if (value && value.flags & ts.TypeFlags.StringLike) return true;
    if (value?.getProperty('equals') ?? value?.getProperty('in')) return true;
    const others = ['AND', 'OR'].map((key) => typeIn(checker, where, key));
    return others.some((other) => other && filters(other.getNumberIndexType() ?? other, name));
  }
  const isLookup = (node: Node) =>
    ts.isCallExpression(node) && lookups.has(checker.getResolvedSignature(node)?.declaration);
  /** Returns true if the code runs for a user who has a row: in a guard, or beside a lookup or a registration. */
  const isGuarded = (node: Node) =>
    ts.findAncestor(node, (each) => isLookup(each) || (ts.isFunctionLike(each) && some(each, isLookup)));
  const isOfChange = (node: Node) =>
    ts.findAncestor(node, (each) => ts.isCallExpression(each) && CHANGE.test(each.expression.getText()));

  /** Reads a call of `prismaTable` or `drizzleTable`. The types of all uses of the table lead to its `column` in the schema. */
  function tableOf({ arguments: [client, model, options] }: CallExpression) {
    const delegate = textIn(typeAt(model));
    const models = typeAt(client)?.getCallSignatures()[0]?.getReturnType();
    const clerkId = textIn(typeAt(options, 'clerkId')) ?? '';
    return {
      name: delegate ?? model?.getText(),
      clerkId,
      column: columnIn(delegate ? typeIn(checker, models, delegate) : typeAt(model), clerkId),
      isClaiming: typeAt(options, 'claim') !== undefined,
      register: typeAt(options, 'kind') ? 'registerTenant' : 'register',
    };
  }
  type Table = ReturnType<typeof tableOf>;

  function judge(call: CallExpression, { name, clerkId, column, isClaiming, register }: Table): void {
    const method = nameOf(call);
    if (![INSERTS, UPDATES, READS, LISTS].some((names) => names.test(method))) return;
    const [first] = call.arguments;
    const isPrisma = columnIn(typeAt(ownerOf(call.expression)), clerkId) === column;
    const isOfTable = isPrisma || columnIn(typeAt(first), clerkId) === column;
    // The values of Drizzle are in the call that follows: `db.insert(users).values(…)`.
    const next = call.parent.parent;
    const values = ts.isCallExpression(next) ? typeAt(next.arguments[0]) : undefined;
    const data = isPrisma ? typeAt(first, method === 'upsert' ? 'create' : 'data') : values;
    const isColumn = (node: Node) =>
      symbolOf(node)?.declarations?.[0] === column && typeAt(node, '_') !== undefined;
    const isRead = isPrisma ? filters(typeAt(first, 'where'), clerkId) : call.arguments.some(isColumn);
    if (isOfTable && INSERTS.test(method)) {
      if (sets(data, clerkId, false))
        report('FAILURE', call, `inserts into ${name}. Call ${register}(), and make it an update.`);
      else if (!isClaiming)
        report('WARNING', call, `inserts into ${name}. Without the option claim, no user gets the row.`);
    } else if (isOfTable && UPDATES.test(method)) {
      if (sets(data, clerkId, true))
        report('WARNING', call, `sets ${clerkId}. For a new user, the option claim does it, once.`);
    } else if (!isRead || isGuarded(call) || isOfChange(call)) return;
    else if (LISTS.test(method)) report('WARNING', call, `lists by ${clerkId}. New users have no row yet.`);
    else report('FAILURE', call, `reads by ${clerkId}. A new user has no row yet: call ${register}().`);
  }

  const calls: CallExpression[] = [];
  function collect(node: Node): void {
    if (ts.isCallExpression(node)) calls.push(node);
    ts.forEachChild(node, collect);
  }
  for (const source of sources) collect(source);
  for (const link of calls.filter((call) => LINKS.test(nameOf(call))))
    for (const property of typeAt(link)?.getProperties() ?? [])
      for (const { declaration } of checker.getTypeOfSymbol(property).getCallSignatures())
        if (property.name !== 'webhook') lookups.add(declaration);
  const tables = calls.filter((call) => TABLES.test(nameOf(call)));
  for (const call of tables) {
    const table = tableOf(call);
    if (table.column) for (const each of calls) judge(each, table);
    else report('FAILURE', call, 'types are missing. Run prisma generate, and write clerkId as a literal.');
  }
  if (tables.length > 0) return findings;
  return ['FAILURE   No call of prismaTable or drizzleTable. Run clerk-identity-link init.'];
}
