import { setTimeout as pause } from 'node:timers/promises';
import { type Call, call, checkHistory, ENTRY_POINTS, readRows } from './history';
import { inParallel } from './parallel';
import { deliver, me, now, register, tokenFor, userCreated } from './requests';
import type { ServiceAccess } from './service';

export type Burst = Awaited<ReturnType<typeof startBurst>>;

/**
 * Registers new users until it is ended, also while the service fails. Sends three requests for each user at the same time, to different processes: a request with a session of
 * the user (guard), a call of the register route and a webhook. A request that gets a 500 or no response is sent to the next
 * process. Any other status is final. `concurrency` is the number of requests in flight. `name` is part of the user ids.
 */
export async function startBurst(service: ServiceAccess, name: string, concurrency = 9) {
  const calls: Call[] = [];
  // The register route is guarded as well. With the token of the new user, the guard would register the user before the handler
  // does. The token for this route therefore belongs to another user.
  const caller = tokenFor(service.idp, `user_${name}_caller`, { exp: now() + 36_000 });
  for (const { url } of service.processes) await me(url, caller);
  let sent = 0;
  let ending = false;
  const send = async (id: string, entryPoint: Call['entryPoint']) => {
    const token = tokenFor(service.idp, id);
    const request = {
      guard: (url: string) => me(url, token),
      register: (url: string) => register(url, caller, { identityProviderUserId: id }),
      webhook: (url: string) => deliver(url, userCreated(id)),
    }[entryPoint];
    for (;;) {
      const { url } = service.processes[sent++ % service.processes.length] ?? service;
      const made = await call(id, entryPoint, () => request(url));
      calls.push(made);
      if (made.status !== undefined && made.status !== 500) return;
      if (made.status === undefined) await pause(100);
    }
  };
  const workers = Array.from({ length: concurrency / ENTRY_POINTS.length }, async (_, worker) => {
    for (let user = 0; !ending; user += 1)
      await Promise.all(ENTRY_POINTS.map((each) => send(`user_${name}_${worker}_${user}`, each)));
  });
  const done = Promise.all(workers);
  // Prevents an unhandled rejection. The promise that `end` returns still rejects.
  done.catch(() => undefined);
  return {
    /** All calls that have ended so far, in the order in which they ended. */
    calls,
    /** Returns the users of whom a call got a 2xx. */
    acknowledged: () =>
      new Set(calls.filter(({ status = 500 }) => status < 300).map((made) => made.identityProviderUserId)),
    /** Stops sending requests for further users. Resolves once every started request has a final result. */
    async end() {
      ending = true;
      await done;
    },
  };
}

/**
 * Requests the id of each acknowledged user from each process. Returns what `checkHistory` finds in these calls and the calls
 * of the burst.
 */
export async function violationsOf(service: ServiceAccess, burst: Burst): Promise<string[]> {
  const calls: Call[] = [...burst.calls];
  await inParallel(8, [...burst.acknowledged()], async (id) => {
    for (const { url } of service.processes)
      calls.push(await call(id, 'guard', () => me(url, tokenFor(service.idp, id))));
  });
  return checkHistory(calls, await readRows(service));
}
