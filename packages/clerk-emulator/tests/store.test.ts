import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
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

test('A reopened store has the same entries and key, and its next write replaces the rest of an interrupted one', async () => {
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
  await writeFile(`${file}.tmp`, '{"version":1,');
  second.mails.delete('ema_1');
  await second.close();
  expect(await readdir(join(folder, 'kept'))).toEqual(['data.json']);
});

test('Only the owner has permissions on the data file', async () => {
  const file = join(folder, 'secret.json');
  const store = await openStore(file);
  await store.close();
  // 0o077 selects the permission bits of the group and of other users.
  expect((await stat(file)).mode & 0o077).toBe(0);
});

test('An invalid data file causes an error that names the file, and is not changed', async () => {
  const cases = {
    'broken.json': '{"version":1,',
    'other.json': '{"version":3}',
    'earlier.json': '{"version":2,"signingKeyPem":"key","invitations":[{"id":"inv_1"}]}',
    'empty.json': '',
  };
  for (const [name, text] of Object.entries(cases)) {
    const file = join(folder, name);
    await writeFile(file, text);
    await expect(openStore(file)).rejects.toThrow(file);
    expect(await readFile(file, 'utf8')).toBe(text);
  }
  await expect(openStore(folder)).rejects.toThrow(/EISDIR/);
});

test('A store calls a listener at most once per event loop iteration, and not after the listener is removed', async () => {
  const store = await openStore(undefined);
  const next = () => new Promise<void>((resolve) => setImmediate(resolve));
  await next();
  const listener = vi.fn();
  const unsubscribe = store.onChange(listener);
  for (const change of [
    () => ['ema_1', 'ema_2'].map((id) => store.mails.put(mail(id))),
    () => store.mails.delete('ema_unknown'),
    unsubscribe,
    () => store.mails.delete('ema_1'),
  ]) {
    change();
    await next();
  }
  expect(listener).toHaveBeenCalledTimes(1);
  await store.close();
});
