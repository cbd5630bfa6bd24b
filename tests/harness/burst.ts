import { z } from 'zod';
import { inParallel } from './parallel';
import { deliver, me, now, register, tokenFor, userCreated } from './requests';
import type { TestService } from './service';

const ENTRY_POINTS = ['guard', 'register', 'webhook'] as const;
const Linked = z.object({ userId: z.string() });

/** One response to a request of a burst. */
interface BurstResponse {
  /** Address of the process that sent the response. */
  readonly url: string;
  readonly identityProviderUserId: string;
  readonly status: number;
  /** Undefined for the webhook, because its response does not contain the id. */
  readonly userId: string | undefined;
  /** Time of arrival, as `performance.now()` returns it. */
  readonly at: number;
}

/** A continuous load of requests for new users. It continues while the service fails. */
export interface Burst {
  /** All responses so far, in order of arrival. */
  readonly responses: readonly BurstResponse[];
  /** Returns the users whose request or event got a 2xx response. */
  acknowledged(): Set<string>;
  /** Stops sending requests for further users. Resolves once every request in flight has its final response. */
  end(): Promise<void>;
}

/**
 * Sends a request for one new user after another, alternately to the guard, the register route and the webhook, and
 * alternately to each process of the service. Sends a request again immediately if it gets a 500. Any other response is
 * final. `concurrency` is the number of requests in flight.
 */
export async function startBurst(service: TestService, name: string, concurrency = 8): Promise<Burst> {
  const responses: BurstResponse[] = [];
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
    for (let status = 500; status === 500; ) {
      const { status: received, body } = await {
        guard: () => me(url, token),
        register: () => register(url, caller, { identityProviderUserId: id }),
        webhook: () => deliver(url, userCreated(id)),
      }[entryPoint]();
      status = received;
      const userId = Linked.safeParse(body).data?.userId;
      responses.push({ url, identityProviderUserId: id, status, userId, at: performance.now() });
    }
  };
  const callers = Array.from({ length: concurrency }, async () => {
    while (!ending) await linkNewUser();
  });
  const done = Promise.all(callers);
  // The promise that `end` returns reports a rejection.
  done.catch(() => undefined);
  return {
    responses,
    acknowledged: () =>
      new Set(
        responses.filter(({ status }) => status < 300).map((response) => response.identityProviderUserId),
      ),
    async end() {
      ending = true;
      await done;
    },
  };
}

/** Users of a burst whose link to an internal id is missing or wrong. Both lists are empty if every link is correct. */
interface BrokenLinks {
  /** Acknowledged users without a row. */
  readonly missing: readonly string[];
  /** Users whose responses contain more than one internal id, or an id that differs from the id of their row. */
  readonly ambiguous: readonly string[];
}

/** Compares the responses of a burst with the rows and with the current response of each process. */
export async function findBrokenLinks(service: TestService, burst: Burst): Promise<BrokenLinks> {
  const { rows } = await service.database.pool.query<{ id: string; idp: string }>(
    'SELECT id, identity_provider_user_id AS idp FROM users',
  );
  const idOf = new Map(rows.map(({ id, idp }) => [idp, id]));
  const acknowledged = burst.acknowledged();
  const userIds = new Map([...acknowledged].map((id) => [id, new Set<string>()]));
  for (const { identityProviderUserId, userId } of burst.responses) {
    if (userId !== undefined) userIds.get(identityProviderUserId)?.add(userId);
  }
  await inParallel(8, [...userIds], async ([id, ids]) => {
    for (const { url } of service.processes) {
      ids.add(Linked.parse((await me(url, tokenFor(service.idp, id))).body).userId);
    }
  });
  return {
    missing: [...acknowledged].filter((id) => !idOf.has(id)),
    ambiguous: [...userIds]
      .filter(([id, ids]) => ids.size !== 1 || !ids.has(idOf.get(id) ?? ''))
      .map(([id]) => id),
  };
}
