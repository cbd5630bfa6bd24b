import { z } from 'zod';
import { inParallel } from './parallel';
import { deliver, me, now, register, tokenFor, userCreated } from './requests';
import type { TestService } from './service';

const WAYS = ['guard', 'register', 'webhook'] as const;
const Linked = z.object({ userId: z.string() });

/** One answer to a caller of a burst. */
interface BurstAnswer {
  /** Of the process that was asked. */
  readonly url: string;
  readonly identityProviderUserId: string;
  readonly status: number;
  /** Of an answer that tells it: the webhook's does not. */
  readonly userId: string | undefined;
  /** In the milliseconds of `performance.now()`. */
  readonly at: number;
}

/** New users who go on arriving, whatever happens to the service. */
export interface Burst {
  /** Of every attempt so far, in the order in which they came. */
  readonly answers: readonly BurstAnswer[];
  /** The users who were acknowledged: told their id, or the delivery of their event confirmed. */
  acknowledged(): Set<string>;
  /** Resolves once every caller was acknowledged; nobody arrives any more. */
  end(): Promise<void>;
}

/**
 * Has new users arrive by guard, register or webhook, each in one of these ways, spread over the service's processes. Whoever is
 * answered 500 asks again at once, as callers and the webhook's sender do in the end. Any other answer counts as the last.
 */
export async function startBurst(service: TestService, name: string, concurrency = 8): Promise<Burst> {
  const answers: BurstAnswer[] = [];
  const caller = tokenFor(service.idp, `user_${name}_caller`, { exp: now() + 3600 });
  for (const { url } of service.processes) await me(url, caller);
  let arrived = 0;
  let ending = false;
  const arrive = async () => {
    const number = arrived++;
    const id = `user_${name}_${number}`;
    const way = WAYS[number % WAYS.length] ?? 'guard';
    const url = service.processes[number % service.processes.length]?.url ?? service.url;
    const token = tokenFor(service.idp, id);
    for (let status = 500; status === 500; ) {
      const answer = await {
        guard: () => me(url, token),
        register: () => register(url, caller, { identityProviderUserId: id }),
        webhook: () => deliver(url, userCreated(id)),
      }[way]();
      status = answer.status;
      const userId = Linked.safeParse(answer.body).data?.userId;
      answers.push({ url, identityProviderUserId: id, status, userId, at: performance.now() });
    }
  };
  const callers = Array.from({ length: concurrency }, async () => {
    while (!ending) await arrive();
  });
  const done = Promise.all(callers);
  // Heard of in `end`.
  done.catch(() => undefined);
  return {
    answers,
    acknowledged: () =>
      new Set(answers.filter(({ status }) => status < 300).map((answer) => answer.identityProviderUserId)),
    async end() {
      ending = true;
      await done;
    },
  };
}

/** What is wrong with the links of a burst: all is well if each list is empty. */
interface BrokenLinks {
  /** Acknowledged users without a row. */
  readonly missing: readonly string[];
  /** Users who were told more than one id, or another than their row's, during the burst or now by any process. */
  readonly ambiguous: readonly string[];
}

/** Compares what the callers of a burst were told with the rows, and with what the guard of each process says now. */
export async function brokenLinks(service: TestService, burst: Burst): Promise<BrokenLinks> {
  const { rows } = await service.database.pool.query<{ id: string; idp: string }>(
    'SELECT id, identity_provider_user_id AS idp FROM users',
  );
  const idOf = new Map(rows.map(({ id, idp }) => [idp, id]));
  const acknowledged = burst.acknowledged();
  const told = new Map([...acknowledged].map((id) => [id, new Set<string>()]));
  for (const { identityProviderUserId, userId } of burst.answers) {
    if (userId !== undefined) told.get(identityProviderUserId)?.add(userId);
  }
  await inParallel(8, [...told], async ([id, ids]) => {
    for (const { url } of service.processes) {
      ids.add(Linked.parse((await me(url, tokenFor(service.idp, id))).body).userId);
    }
  });
  return {
    missing: [...acknowledged].filter((id) => !idOf.has(id)),
    ambiguous: [...told]
      .filter(([id, ids]) => ids.size !== 1 || !ids.has(idOf.get(id) ?? ''))
      .map(([id]) => id),
  };
}
