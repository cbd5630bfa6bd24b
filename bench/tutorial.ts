import {
  deliver,
  me,
  type ParsedResponse,
  signatureHeaders,
  tokenFor,
  userCreated,
} from '../tests/harness/requests';
import { startDependencies } from '../tests/harness/service';
import startDatabase from '../tests/vitest/start-database';
import { build, copyPackages, start, tutorial } from './servers';

// `node --import tsx bench/tutorial.ts` shows what breaks in the tutorial's application (docs/why-not-by-hand.md).

const stopDatabase = await startDatabase();
const dependencies = await startDependencies({ keys: 'live' });
const { database, idp, kv } = dependencies;
const application = tutorial(dependencies);
copyPackages();
console.log('building');
await build(application);
const { url, stop } = await start(application, {
  method: 'GET',
  path: '/users/v1/me',
  headers: {},
  status: 401,
});

/** Prints the statuses of responses and the time until the last one. No response within 30 s is `none`. */
async function show(title: string, ...calls: Promise<ParsedResponse>[]): Promise<void> {
  const started = performance.now();
  const statuses = (await Promise.allSettled(calls)).map((each) =>
    each.status === 'fulfilled' ? each.value.status : 'none',
  );
  const counts = [...new Set(statuses)].map(
    (status) => `${statuses.filter((each) => each === status).length} x ${status}`,
  );
  console.log(`${title}: ${counts.join(', ')}, ${((performance.now() - started) / 1_000).toFixed(1)} s`);
}
const call = (user: string, claims = {}) => me(url, tokenFor(idp, user, claims));

await show('40 first requests of one user', ...Array.from({ length: 40 }, () => call('user_new')));
await show('a token that is no session (no sid)', call('user_a', { sid: undefined }));
await show('a token of another frontend (azp)', call('user_b', { azp: 'https://blog.example.com' }));
await show('a signed event with an empty id', deliver(url, userCreated('')));
await show('a signed event that is not JSON', deliver(url, 'x'));
await show('a forged event of 30 MB', deliver(url, 'x'.repeat(30_000_000), signatureHeaders('')));
await database.pool.query("DELETE FROM users WHERE identity_provider_user_id = 'user_new'");
await show('a request of a deleted user', call('user_new'));
await show('a late event of a deleted user', deliver(url, userCreated('user_new')));
await kv.proxy.treat('refuse');
await show('a request while the cache refuses connections', call('user_a'));
await kv.proxy.treat('black-hole');
await show('a request while the cache does not respond', call('user_a'));
await kv.proxy.treat('forward');
await database.proxy.treat('black-hole');
await show('an event while the database does not respond', deliver(url, userCreated('user_c')));
await stop();
await dependencies.stop();
await stopDatabase?.();
