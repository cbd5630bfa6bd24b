import { type Call, call, checkHistory, ENTRY_POINTS, readRows } from './history';
import { inParallel } from './parallel';
import { deliver, me, now, register, tokenFor, userCreated } from './requests';
import type { TestService } from './service';

interface BurstCall extends Call {
  /** Address of the process that got the request. */
  readonly url: string;
}

/** A continuous load of requests for new users. The load continues while the service fails. */
export interface Burst {
  /** All calls that have ended so far, in the order in which they ended. */
  readonly calls: readonly BurstCall[];
  /** Returns the users whose request or event got a 2xx response. */
  acknowledged(): Set<string>;
  /** Stops sending requests for further users. Resolves once every started request has a result other than a 500. */
  end(): Promise<void>;
}

/**
 * Sends one request for each new user. The requests alternate between three ways to register a user: a guarded route (the
 * guard registers the user of the session token), the register route and the webhook. The requests also alternate between the
 * processes of the service. A request that gets a 500 is sent again immediately. Any other status and a missing response are
 * final results. `concurrency` is the number of requests in flight. `name` is part of the user ids.
 */
export async function startBurst(service: TestService, name: string, concurrency = 8): Promise<Burst> {
  const calls: BurstCall[] = [];
  // The register route is guarded as well. With the token of the new user, the guard would register the user before the handler
  // does. The token for this route therefore belongs to another user.
  const caller = tokenFor(service.idp, `user_${name}_caller`, { exp: now() + 3600 });
  for (const { url } of service.processes) await me(url, caller);
  let sent = 0;
  let ending = false;
  const linkNewUser = async () => {
    const number = sent++;
    const id = `user_${name}_${number}`;
    const entryPoint = ENTRY_POINTS[number % ENTRY_POINTS.length] ?? 'guard';
    const url = service.processes[number % service.processes.length]?.url ?? service.url;
    const token = tokenFor(service.idp, id);
    const send = {
      guard: () => me(url, token),
      register: () => register(url, caller, { identityProviderUserId: id }),
      webhook: () => deliver(url, userCreated(id)),
    }[entryPoint];
    for (let status: number | undefined = 500; status === 500; ) {
      const { call: made } = await call(id, entryPoint, send);
      calls.push({ ...made, url });
      status = made.status;
    }
  };
  const callers = Array.from({ length: concurrency }, async () => {
    while (!ending) await linkNewUser();
  });
  const done = Promise.all(callers);
  // Prevents an unhandled rejection. The promise that `end` returns still rejects.
  done.catch(() => undefined);
  return {
    calls,
    acknowledged: () =>
      new Set(calls.filter(({ status = 500 }) => status < 300).map((made) => made.identityProviderUserId)),
    async end() {
      ending = true;
      await done;
    },
  };
}

/**
 * Requests the id of each acknowledged user from each process. Then checks the history with `checkHistory`. The history
 * consists of these calls and the calls of the burst. Returns a sentence for each user whose calls are not linearizable.
 */
export async function violationsOf(service: TestService, burst: Burst): Promise<string[]> {
  const calls: Call[] = [...burst.calls];
  await inParallel(8, [...burst.acknowledged()], async (id) => {
    for (const { url } of service.processes) {
      const { call: made } = await call(id, 'guard', () => me(url, tokenFor(service.idp, id)));
      calls.push(made);
    }
  });
  return checkHistory(calls, await readRows(service));
}
