import { z } from 'zod';
import { pageOf, parse, readParameters } from '../http';

type Value = string | number | null;
/** The values of a row by the names of fields. A user can have several values of `email_address`. */
export type Fields<Row> = Readonly<Record<string, (row: Row) => readonly Value[]>>;

/** Describes a list of Clerk's. Names are separated by spaces. A request with any other parameter gets a 422. */
interface ListDescription<Row> {
  /** The fields besides `created_at`. */
  readonly fields: Fields<Row>;
  /** Parameters that select rows. The name of one is that of a field, or of a field and a test, such as `email_address_query`. */
  readonly filters: string;
  /** Fields that `order_by` accepts. */
  readonly orders?: string;
  /** Default of `order_by`. If it is empty, the rows keep their order. */
  readonly defaultOrder?: string;
  /** Parameters that select nothing. */
  readonly others?: string;
}

/** The values of a parameter, which a query may repeat. */
const Values = z.preprocess((value) => [value].flat(), z.array(z.string()).max(100));
/** The first value. */
const Text = Values.transform(([text = '']) => text.toLowerCase());
const Time = Text.pipe(z.coerce.number<string>().int());
const lower = (value: Value) => String(value).toLowerCase();

const isEqual = Values.transform((given) => {
  const wanted = new Set(given.map(lower));
  return (value: Value) => wanted.has(lower(value));
});
const isAfter = Time.transform((limit) => (value: Value) => Number(value) > limit);
/** The tests that are the last word of a parameter's name, each with the schema of the parameter. */
const TESTS = new Map<string, z.ZodType<(value: Value) => boolean>>([
  ['before', Time.transform((limit) => (value) => Number(value) < limit)],
  ['after', isAfter],
  ['since', isAfter],
  ['query', Text.transform((part) => (value) => lower(value).includes(part))],
]);
/** Ids and modes, which a comma may separate. One may have the prefix `-` (exclude) or `+` (include, the default). */
const selectsIds = Values.transform((values) => {
  const given = values.flatMap((value) => value.split(','));
  const signed = new Set(given.map((id) => id.replace(/^(?![+-])/, '+')));
  const excludesOnly = given.every((id) => id.startsWith('-'));
  return (ids: readonly Value[]) =>
    (excludesOnly || ids.some((id) => signed.has(`+${id}`))) && !ids.some((id) => signed.has(`-${id}`));
});

/** Returns the schema of a filter. It parses a parameter into a function that tests a row. */
function filter<Row>(fields: Fields<Row>, name: string): z.ZodType<(row: Row) => boolean> {
  const word = name.split('_').at(-1) ?? '';
  const test = TESTS.get(word);
  const read = fields[test ? name.slice(0, -word.length - 1) || name : name];
  if (read === undefined) throw new Error(`There is no field for ${name}.`);
  if (word === 'id' || word === 'mode')
    return selectsIds.transform((selects) => (row: Row) => selects(read(row)));
  return (test ?? isEqual).transform(
    (passes) => (row: Row) => read(row).some((value) => value !== null && passes(value)),
  );
}

/** Returns a function that selects and sorts the rows of a list as a query requests. */
export function describeList<Row extends { readonly id: string; readonly createdAt: number }>(
  list: ListDescription<Row>,
) {
  const { filters, orders = '', defaultOrder = orders && '-created_at', others = 'limit offset' } = list;
  const fields: Fields<Row> = { created_at: ({ createdAt }) => [createdAt], ...list.fields };
  const everything = () => true;
  const schemas = (names: string, schema: (name: string) => z.ZodType<(row: Row) => boolean>) =>
    Object.fromEntries(names.split(' ').map((name) => [name, schema(name).optional()]));
  const Order = Text.pipe(z.string().regex(new RegExp(`^[+-]?(${orders.replaceAll(' ', '|')})$`)));
  const Query = z.strictObject({
    ...schemas(others, () => z.unknown().transform(() => everything)),
    ...(orders && schemas('order_by', () => Order.transform(() => everything))),
    ...schemas(filters, (name) => filter(fields, name)),
  });
  const sorted = (rows: readonly Row[], order: string) => {
    const keyed = rows.map((row) => ({ row, key: fields[order.replace(/^[+-]/, '')]?.(row)[0] ?? '' }));
    keyed.sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0));
    const ascending = keyed.map(({ row }) => row);
    return order.startsWith('-') ? ascending.reverse() : ascending;
  };
  return (rows: readonly Row[], { searchParams }: URL): Row[] => {
    const tests = Object.values(parse(Query, readParameters(searchParams)));
    const selected = (all: readonly Row[]) =>
      all.filter((row) => tests.every((passes) => passes?.(row) ?? true));
    const order = searchParams.get('order_by') ?? defaultOrder;
    const cursor = searchParams.get('starting_after');
    if (order === '') return selected(rows);
    if (cursor === null) return sorted(selected(rows), order);
    const all = sorted(rows, order);
    return selected(all.slice(all.findIndex(({ id }) => id === cursor) + 1));
  };
}

/**
 * Returns a page, or only its rows without `paginated=true`, which Clerk's SDK sends. Clerk's document describes only the rows.
 */
export function optionalPage<Row>(url: URL, rows: readonly Row[], format?: (row: Row) => unknown) {
  const page = pageOf(url, rows, format);
  return url.searchParams.get('paginated') === 'true' ? page : page.data;
}
