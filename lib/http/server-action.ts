import type { NextRequest } from 'next/server';
import * as z from 'zod/mini';
import { processState } from '../process-state';
import { BAD_REQUEST, NOT_FOUND, type Rejection } from '../routing/paths';

const build = processState('server-actions', (): { ids?: ReadonlySet<string> } => ({}));

const Manifest = z.object({ node: z.record(z.string(), z.unknown()) });

/** Sets the ids of the server actions in the build. The ids are the keys of the manifest that Next.js writes. */
export function setServerActions(manifest: unknown): void {
  build.ids = new Set(Object.keys(Manifest.parse(manifest).node));
}

/**
 * Response to an action that is not in the build, for example an action of an earlier deployment. If a response has the header
 * `x-nextjs-action-not-found`, the browser code of Next.js throws an `UnrecognizedActionError`.
 */
const UNKNOWN_ACTION: Rejection = { ...NOT_FOUND, headers: { 'x-nextjs-action-not-found': '1' } };

/**
 * Returns false if the build does not contain this action. Only server.ts sets the list of actions. Without a list, for example
 * on Vercel, this function returns true. Next.js then responds to an unknown action itself, with a 400 or 409 instead of a 404.
 */
const isKnown = (id: string): boolean => build.ids?.has(id) ?? true;

/** Limits of the arguments. Next.js decodes them recursively and needs about 2 µs for each array, object and reference. */
const MAX_DEPTH = 64;
const MAX_VALUES = 10_000;
/** Maximum number of fields of a form, because a longer form takes long to parse. PHP has the same default (max_input_vars). */
const MAX_FIELDS = 1_000;
/** Maximum size of the headers of a field. */
const MAX_HEAD_BYTES = 2_000;
/** Maximum number of arguments of an action. Next.js has the same limit (`SERVER_ACTION_ARGS_LIMIT`). */
const MAX_ARGUMENTS = 1_000;

/**
 * Throws an error if all JSON texts together have too many values, or if one of them is nested too deeply. Scans only strings,
 * brackets and commas.
 */
function checkLimits(texts: readonly string[]): void {
  let values = 0;
  for (const text of texts) {
    let depth = 0;
    for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"?|[[{,]|[\]}]/gs)) {
      if (token === '[' || token === '{') depth += 1;
      if (token === ']' || token === '}') depth = Math.max(0, depth - 1);
      if (/^[[{,]/.test(token)) values += 1;
      if (depth > MAX_DEPTH || values > MAX_VALUES) throw new RangeError('Too many values or levels');
    }
  }
}

/** Decodes a value as Next.js does. A field whose name is a number contains a part of the value, in JSON. */
async function decode(fields: FormData): Promise<unknown> {
  const parts = [...fields].filter(([name]) => !Number.isNaN(Number(name)));
  // Rejects a field name such as `0x0`. Next.js runs an action with another decoder (`decodeReplyFromBusboy`), which reads this
  // field as part 0. `decodeReply` below does not read the field, so the action would get a value that was not checked.
  if (parts.some(([name]) => name !== String(Number(name))))
    throw new TypeError('A field name is not a decimal number');
  checkLimits(parts.map(([, part]) => (typeof part === 'string' ? part : '')));
  const { createTemporaryReferenceSet, decodeReply } = await import(
    'next/dist/compiled/react-server-dom-turbopack/server.node'
  );
  return decodeReply(fields, {}, { temporaryReferences: createTemporaryReferenceSet() });
}

const Arguments = z.array(z.unknown()).check(z.maxLength(MAX_ARGUMENTS));
const Reference = z.string().check(z.regex(/^\d{1,9}$/));
/** An action with bound arguments, as a browser without scripts submits it in a form. */
const BoundAction = z.object({ id: z.string(), bound: z.unknown() });

/**
 * Returns the ids of the actions that a form contains. The field `$ACTION_ID_<id>` names an action without bound arguments. For
 * a field `$ACTION_REF_<n>`, the fields `$ACTION_<n>:…` contain the id and the bound arguments. Rejects if these fields are
 * invalid.
 */
async function actionsOf(form: FormData): Promise<string[]> {
  const ids: string[] = [];
  for (const name of new Set(form.keys())) {
    if (name.startsWith('$ACTION_ID_')) ids.push(name.slice('$ACTION_ID_'.length));
    if (!name.startsWith('$ACTION_REF_')) continue;
    const prefix = `$ACTION_${Reference.parse(name.slice('$ACTION_REF_'.length))}:`;
    const fields = new FormData();
    for (const [key, part] of form) if (key.startsWith(prefix)) fields.append(key.slice(prefix.length), part);
    const { id, bound } = BoundAction.parse(await decode(fields));
    Arguments.parse((await bound) ?? []);
    ids.push(id);
  }
  return ids;
}

/** Throws an error if a form has too many fields or a field has long headers, because the form would take long to parse. */
function checkForm(body: Buffer, contentType: string): void {
  const [, boundary] = /boundary="?([^";]+)/.exec(contentType) ?? [];
  if (boundary === undefined) throw new TypeError('The form has no boundary');
  const delimiter = `--${boundary}`;
  let delimiters = 0;
  for (let at = body.indexOf(delimiter); at !== -1; at = body.indexOf(delimiter, at + delimiter.length)) {
    delimiters += 1;
    const head = body
      .subarray(at + delimiter.length, at + delimiter.length + MAX_HEAD_BYTES)
      .toString('latin1');
    // The last delimiter ends with `--`. The headers of a field end with an empty line.
    const isValid = head.startsWith('--') || head.includes('\r\n\r\n');
    if (!isValid || delimiters > MAX_FIELDS + 1) throw new RangeError('Too many fields or too long headers');
  }
}

/** Returns the fields of a form. If the body is not a form, returns a form with the body in the field `0`, as Next.js does. */
async function fieldsOf(request: NextRequest): Promise<FormData> {
  const contentType = request.headers.get('content-type') ?? '';
  if (contentType.startsWith('multipart/')) {
    const body = Buffer.from(await request.arrayBuffer());
    checkForm(body, contentType);
    return new Response(body, { headers: { 'content-type': contentType } }).formData();
  }
  const fields = new FormData();
  fields.set('0', await request.text());
  return fields;
}

/**
 * Returns the rejection of a server action, or undefined if Next.js may run it. lib/routing/server-action.ts has already
 * checked the headers of the action. An action that the build does not contain gets a 404. Arguments that exceed the limits or
 * that Next.js cannot decode get a 400. Without this check, Next.js would respond to such arguments with a 500 and print parts
 * of them.
 */
export async function rejectionForServerAction(request: NextRequest): Promise<Rejection | undefined> {
  const id = request.headers.get('next-action');
  if (id !== null && !isKnown(id)) return UNKNOWN_ACTION;
  try {
    const fields = await fieldsOf(request);
    if (id !== null) {
      Arguments.parse(await decode(fields));
      return undefined;
    }
    const ids = await actionsOf(fields);
    if (ids.length === 0) return BAD_REQUEST;
    return ids.every(isKnown) ? undefined : UNKNOWN_ACTION;
  } catch {
    return BAD_REQUEST;
  }
}
