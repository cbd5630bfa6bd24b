import { beforeEach, expect, test, vi } from 'vitest';
import * as z from 'zod/mini';
import { guardAction } from '#lib/guard-action';
import { HttpError } from '#lib/http/error';
import { requireUser } from '#lib/user';

vi.mock('#lib/user', () => ({ requireUser: vi.fn() }));

// guardAction() creates a server action whose handler runs only for a user with a session, and only with valid input.
const CONTEXT = { isAuthenticated: true, userId: 'internal-id', identityProviderUserId: 'user_1' } as const;
const handler = vi.fn(async (input: unknown, _context: object): Promise<unknown> => input);
const Project = z.object({
  name: z
    .string('The name is missing')
    .check(z.minLength(2, 'The name is too short'), z.regex(/^[a-z]/, 'a to z')),
  tags: z.optional(z.union([z.string(), z.array(z.string())])),
  owner: z.optional(z.object({ id: z.string('The owner needs an id') })),
});
const action = guardAction(Project, handler);
/** Schema that accepts any input. */
const anyInput = z.pipe(
  z.unknown(),
  z.transform((): { name: string } => ({ name: 'unused' })),
);

const form = (...fields: [name: string, value: string][]) => {
  const data = new FormData();
  for (const [name, value] of fields) data.append(name, value);
  return data;
};

beforeEach(() => {
  vi.clearAllMocks();
  vi.mocked(requireUser).mockResolvedValue(CONTEXT);
});

test('An action passes the parsed input and the context of the user to its handler, and returns the result as `data`', async () => {
  handler.mockResolvedValueOnce('created');
  expect(await action(undefined, { name: 'garden' })).toEqual({ ok: true, data: 'created' });
  expect(handler).toHaveBeenCalledExactlyOnceWith({ name: 'garden' }, CONTEXT);
});

test('The input is the last argument of the action, whether or not React passes a previous state before the input', async () => {
  const input = form(['name', 'garden']);
  for (const args of [[input], [undefined, input], [{ name: 'previous' }, input]])
    expect(await Reflect.apply(action, undefined, args)).toEqual({ ok: true, data: { name: 'garden' } });
});

test('A field that occurs several times in a form becomes an array in the input of the action', async () => {
  const input = form(['tags', 'a'], ['name', 'garden'], ['tags', 'b'], ['tags', 'c']);
  expect(await action(undefined, input)).toEqual({
    ok: true,
    data: { name: 'garden', tags: ['a', 'b', 'c'] },
  });
});

test('If the user has no session, an action redirects, and neither its schema nor its handler runs', async () => {
  vi.mocked(requireUser).mockRejectedValue(new Error('NEXT_REDIRECT'));
  const parsed = vi.fn(() => true);
  const guarded = guardAction(anyInput.check(z.refine(parsed)), handler);
  await expect(guarded(undefined, {})).rejects.toThrow('NEXT_REDIRECT');
  expect([parsed.mock.calls, handler.mock.calls]).toEqual([[], []]);
});

test('An action with invalid input returns the status 400 and the message of the first issue of each invalid field', async () => {
  expect(await action(undefined, JSON.parse('{"name":"0","owner":{}}'))).toEqual({
    ok: false,
    status: 400,
    message: 'The name is too short',
    fields: { name: 'The name is too short', 'owner.id': 'The owner needs an id' },
  });
  expect(handler).not.toHaveBeenCalled();
});

test('An action returns the status 400 if the schema cannot read the input', async () => {
  const read = () => {
    throw new TypeError('Cannot access name');
  };
  const unreadable = new Proxy({ name: '' }, { get: read });
  const invalid = { ok: false, status: 400, message: 'Invalid input', fields: {} };
  expect(await action(undefined, unreadable)).toEqual(invalid);
  expect(handler).not.toHaveBeenCalled();
});

test('If the handler throws an HttpError, the action returns the status and the message of the error', async () => {
  handler.mockRejectedValueOnce(new HttpError(409, 'Already exists'));
  expect(await action(undefined, { name: 'garden' })).toEqual({
    ok: false,
    status: 409,
    message: 'Already exists',
    fields: {},
  });
});

test('If the handler throws an error that is not an HttpError, the action passes the error through', async () => {
  const error = new Error('NEXT_NOT_FOUND');
  handler.mockRejectedValueOnce(error);
  await expect(action(undefined, { name: 'garden' })).rejects.toBe(error);
});
