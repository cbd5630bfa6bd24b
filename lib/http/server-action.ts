import type { NextRequest } from 'next/server';
import * as z from 'zod/mini';
import { processState } from '../process-state';
import { BAD_REQUEST, NOT_FOUND, type Rejection } from '../routing/rejection-for-address';

const build = processState('server-actions', (): { ids?: ReadonlySet<string> } => ({}));

const Manifest = z.object({ node: z.record(z.string(), z.unknown()) });

/** Sets the server actions that the build contains, from the manifest that Next.js writes. */
export function setServerActions(manifest: unknown): void {
  build.ids = new Set(Object.keys(Manifest.parse(manifest).node));
}

/** Next.js reloads the page of a client whose action is not part of the build any more. */
const UNKNOWN_ACTION: Rejection = { ...NOT_FOUND, headers: { 'x-nextjs-action-not-found': '1' } };

/** Returns true if the build contains this action. Without server.ts, Next.js responds to an unknown one, also with a 404. */
const isKnown = (id: string): boolean => build.ids?.has(id) ?? true;

/** Next.js decodes arguments recursively, and fails if they are nested too deeply. */
const MAX_DEPTH = 64;
/** The limit of Next.js (`SERVER_ACTION_ARGS_LIMIT`). */
const MAX_ARGUMENTS = 1_000;

/** Returns the depth of nested arrays and objects in a JSON text. */
function depthOf(json: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"?|[[{]|[\]}]/gs)) {
    if (token === '[' || token === '{') deepest = Math.max(deepest, ++depth);
    else if (token === ']' || token === '}') depth -= 1;
  }
  return deepest;
}

/** Decodes a value as Next.js does. Rejects if it is invalid. */
async function decode(fields: FormData): Promise<unknown> {
  for (const [name, value] of fields) {
    // A field whose name is a number contains a part of the arguments in JSON.
    if (/^\d+$/.test(name) && typeof value === 'string' && depthOf(value) > MAX_DEPTH) {
      throw new RangeError('The arguments are nested too deeply');
    }
  }
  const { createTemporaryReferenceSet, decodeReply } = await import(
    'next/dist/compiled/react-server-dom-turbopack/server.node'
  );
  return decodeReply(fields, {}, { temporaryReferences: createTemporaryReferenceSet() });
}

const Arguments = z.array(z.unknown()).check(z.maxLength(MAX_ARGUMENTS));
/** An action with bound arguments in a form without scripts. */
const BoundAction = z.object({ id: z.string(), bound: z.unknown() });

/** Returns the ids of the actions that a form names. Rejects if their bound arguments are invalid. */
async function actionsOf(form: FormData): Promise<string[]> {
  const ids: string[] = [];
  for (const name of form.keys()) {
    const [, kind, value = ''] = /^\$ACTION_(ID|REF)_(.*)$/s.exec(name) ?? [];
    if (kind === 'ID') ids.push(value);
    if (kind !== 'REF') continue;
    const prefix = `$ACTION_${value}:`;
    const fields = new FormData();
    for (const [key, part] of form) if (key.startsWith(prefix)) fields.append(key.slice(prefix.length), part);
    const { id, bound } = BoundAction.parse(await decode(fields));
    Arguments.parse((await bound) ?? []);
    ids.push(id);
  }
  return ids;
}

/** Returns the fields of a form, or the arguments of a call in the field `0`, as Next.js does. */
async function fieldsOf(request: NextRequest): Promise<FormData> {
  if (request.headers.get('content-type')?.startsWith('multipart/')) return request.formData();
  const fields = new FormData();
  fields.set('0', await request.text());
  return fields;
}

/**
 * Returns the rejection of a server action whose headers are valid, or undefined. An action that the build does not contain
 * gets a 404, and arguments that Next.js cannot decode get a 400. Next.js would respond with a 500 and print parts of them.
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
