import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openStore } from '../src/instance/store';
import { temporaryFolder } from './helpers/temporary-folder';

const folder = temporaryFolder();

const mail = (id: string) => ({
  id,
  to: 'a@b.example',
  code: '123456',
  purpose: 'sign-in' as const,
  sentAt: 1,
});

test('A reopened store has the same entries in the same order and the same signing key', async () => {
  const file = join(folder, 'kept', 'data.json');
  const first = await openStore(file);
  first.mails.put(mail('ema_2'));
  first.mails.put(mail('ema_1'));
  first.mails.put({ ...mail('ema_2'), code: '654321' });
  await first.close();

  const second = await openStore(file);
  expect(second.mails.all().map(({ id, code }) => [id, code])).toEqual([
    ['ema_2', '654321'],
    ['ema_1', '123456'],
  ]);
  expect(second.signingKeyPem).toBe(first.signingKeyPem);
  await second.close();
  expect(await readdir(join(folder, 'kept'))).toEqual(['data.json']);
});

test('The next write of a store removes the partial file of an interrupted write', async () => {
  const file = join(folder, 'crashed', 'data.json');
  await (await openStore(file)).close();
  await writeFile(`${file}.tmp`, '{"version":1,');
  const store = await openStore(file);
  store.mails.put(mail('ema_1'));
  await store.close();
  expect(await readdir(join(folder, 'crashed'))).toEqual(['data.json']);
});

test('Only the owner has permissions on the data file', async () => {
  const file = join(folder, 'secret.json');
  const store = await openStore(file);
  await store.close();
  // 0o077 selects the permission bits of the group and of other users.
  expect((await stat(file)).mode & 0o077).toBe(0);
});

test('An invalid data file causes an error that names the file, and the file is not changed', async () => {
  const cases = { 'broken.json': '{"version":1,', 'other.json': '{"version":2}', 'empty.json': '' };
  for (const [name, text] of Object.entries(cases)) {
    const file = join(folder, name);
    await writeFile(file, text);
    await expect(openStore(file)).rejects.toThrow(file);
    expect(await readFile(file, 'utf8')).toBe(text);
  }
});

test('An unreadable data file causes an error instead of an empty store', async () => {
  await expect(openStore(folder)).rejects.toThrow(/EISDIR/);
});

test('A store calls a listener at most once per event loop iteration, and not after the listener is removed', async () => {
  const store = await openStore(undefined);
  let calls = 0;
  const next = () => new Promise<void>((resolve) => setImmediate(resolve));
  await next();
  const unsubscribe = store.onChange(() => {
    calls += 1;
  });
  store.mails.put(mail('ema_1'));
  store.mails.put(mail('ema_2'));
  await next();
  expect(calls).toBe(1);
  store.mails.delete('ema_unknown');
  await next();
  expect(calls).toBe(1);
  store.mails.delete('ema_1');
  await next();
  expect(calls).toBe(2);
  unsubscribe();
  store.mails.delete('ema_2');
  await next();
  expect(calls).toBe(2);
  await store.close();
});
