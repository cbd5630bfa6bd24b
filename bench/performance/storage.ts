import { newId } from 'clerk-emulator';
import { Redis } from 'ioredis';
import type { PoolClient } from 'pg';
import { v7 as uuidV7 } from 'uuid';
import { z } from 'zod';
import { cacheUserId, readCachedUserId } from '#lib/linking/user-id-cache';
import { startTcpProxy } from '../../tests/harness/dependencies/tcp-proxy';
import { cpuMilliseconds, percentile } from '../process-figures';
import type { Figures } from './figures';
import type { Fixtures } from './fixtures';
import { INSERT, LOOK_UP } from './statements';
import { serviceVariables } from './targets';

type Storage = NonNullable<Figures['storage']>;

const ROWS_PER_INSERT = 500_000;
/** Number of sequential calls of each measured statement. */
const CALLS = 4_000;
/** Number of ids that are cached to measure the memory per id. */
const CACHED_IDS = 100_000;
/** Number of ids that are written to the cache concurrently. */
const CACHED_AT_ONCE = 100;

/**
 * Inserts rows. The internal ids are UUIDs v7 of consecutive milliseconds. The provider ids are random and have the length of
 * real ids. The index on the provider ids is larger than an index on ascending ids, because its entries arrive in random order.
 */
const FILL = `
  INSERT INTO users (id, identity_provider_user_id)
  SELECT (lpad(to_hex(1760000000000 + n), 12, '0') || '7' || left(hash, 3) || '8' || substr(hash, 4, 15))::uuid,
         'user_' || left(hash, 27)
  FROM (SELECT n, md5(n::text) AS hash FROM generate_series($1::bigint, $2::bigint) AS n) AS numbered`;

const Sizes = z.tuple([
  z.object({ table: z.coerce.number(), idIndex: z.coerce.number(), linkIndex: z.coerce.number() }),
]);
const Names = z.array(z.object({ name: z.string() })).transform((rows) => rows.map(({ name }) => name));
const Backend = z.tuple([z.object({ pid: z.number() })]).transform(([{ pid }]) => pid);
/** Reads the number of pages from the output of EXPLAIN. */
const Plan = z
  .tuple([
    z.object({
      'QUERY PLAN': z.tuple([
        z.object({ Plan: z.object({ 'Shared Hit Blocks': z.number(), 'Shared Read Blocks': z.number() }) }),
      ]),
    }),
  ])
  .transform(
    ([
      {
        'QUERY PLAN': [{ Plan }],
      },
    ]) => Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'],
  );

/** Measures the CPU time that the database process `pid` uses per call, and the median latency of sequential calls. */
async function measureCost(pid: number, call: (index: number) => Promise<unknown>) {
  const milliseconds: number[] = [];
  const before = cpuMilliseconds(pid);
  for (let index = 0; index < CALLS; index += 1) {
    const begin = performance.now();
    await call(index);
    milliseconds.push(performance.now() - begin);
  }
  return {
    serverMicroseconds: ((cpuMilliseconds(pid) - before) / CALLS) * 1000,
    milliseconds: percentile(milliseconds, 0.5),
  };
}

/** Measures the size of the table `users`, and the cost of the statements that look up and insert a user. */
async function measureTable(client: PoolClient, users: number): Promise<Storage['tables'][number]> {
  await client.query('VACUUM ANALYZE users');
  const [bytes] = Sizes.parse(
    (
      await client.query(
        `SELECT pg_table_size('users') AS table, pg_relation_size('users_pkey') AS "idIndex",
                pg_relation_size('users_identity_provider_user_id_key') AS "linkIndex"`,
      )
    ).rows,
  );
  // The size of a BERNOULLI sample varies. The sample has about twice `CALLS` rows, so that LIMIT returns `CALLS` rows if the
  // table has as many.
  const names = Names.parse(
    (
      await client.query(
        `SELECT identity_provider_user_id AS name FROM users
         TABLESAMPLE BERNOULLI (least(100.0, $1)) ORDER BY random() LIMIT $2`,
        [(200 * CALLS) / users, CALLS],
      )
    ).rows,
  );
  const known = (index: number) => names[index % names.length] ?? '';
  const pid = Backend.parse((await client.query('SELECT pg_backend_pid() AS pid')).rows);
  const lookUp = (index: number) => client.query(LOOK_UP, [[known(index)]]);
  // Reads the pages of the sampled rows into memory before the measurement.
  for (let index = 0; index < CALLS; index += 1) await lookUp(index);
  return {
    users,
    bytes,
    lookUpPages: Plan.parse(
      (await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${LOOK_UP}`, [[known(0)]])).rows,
    ),
    lookUp: await measureCost(pid, lookUp),
    insert: await measureCost(pid, () => client.query(INSERT, [[uuidV7()], [newId('user')]])),
  };
}

const usedMemory = async (redis: Redis) =>
  Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1] ?? Number.NaN);

/** Measures the memory per cached id and the bytes per cache request. Uses the functions of the service. */
async function measureCache(fixtures: Fixtures): Promise<Storage['cache']> {
  const { kv, redisUrl } = fixtures;
  const { hostname: host, port } = new URL(kv.url);
  const proxy = await startTcpProxy({ host, port: Number(port) });
  const url = `http://127.0.0.1:${proxy.port}`;
  // `cacheUserId` and `readCachedUserId` read these variables. `launch` (launch.ts) does not pass them to the measured servers.
  Object.assign(process.env, serviceVariables({ ...fixtures, kv: { ...kv, url } }));
  const bytesOf = async (work: () => Promise<unknown>) => {
    const bytes = { sent: 0, received: 0 };
    proxy.onClientData = ({ length }) => {
      bytes.sent += length;
    };
    proxy.onTargetData = ({ length }) => {
      bytes.received += length;
    };
    await work();
    return { ...bytes };
  };
  const write = async (identityProviderUserId: string) => {
    if ((await cacheUserId(identityProviderUserId, uuidV7(), 600)) !== 'stored')
      throw new Error('The cache did not respond in time. The machine is too busy.');
  };
  const read = async (identityProviderUserId: string) => {
    if ((await readCachedUserId(identityProviderUserId)).outcome !== 'hit')
      throw new Error('The cache does not contain the id.');
  };
  const redis = new Redis(redisUrl);
  try {
    const user = newId('user');
    const written = await bytesOf(() => write(user));
    const hit = await bytesOf(() => read(user));
    const before = await usedMemory(redis);
    for (let count = 0; count < CACHED_IDS; count += CACHED_AT_ONCE) {
      await Promise.all(Array.from({ length: CACHED_AT_ONCE }, () => write(newId('user'))));
    }
    return { bytesEach: ((await usedMemory(redis)) - before) / CACHED_IDS, hit, written };
  } finally {
    redis.disconnect();
    await proxy.stop();
  }
}

/**
 * Measures the cache. Then inserts rows into the table `users` up to each of `sizes`, in ascending order, and measures the
 * table. Each measurement of the table also inserts `CALLS` rows and does not delete them, so from the second size on, the
 * table has slightly more rows than the size. Empties the tables `users` and `previous_ids` before the first and after the last
 * measurement of the table.
 */
export async function measureStorage(fixtures: Fixtures, sizes: readonly number[]): Promise<Storage> {
  const cache = await measureCache(fixtures);
  const client = await fixtures.pool.connect();
  try {
    await client.query('TRUNCATE users, previous_ids');
    const tables: Storage['tables'] = [];
    let rows = 0;
    for (const users of sizes) {
      for (; rows < users; rows = Math.min(rows + ROWS_PER_INSERT, users)) {
        await client.query(FILL, [rows + 1, Math.min(rows + ROWS_PER_INSERT, users)]);
      }
      process.stdout.write(`measuring with ${users} users\n`);
      tables.push(await measureTable(client, users));
    }
    await client.query('TRUNCATE users, previous_ids');
    return { tables, cache };
  } finally {
    client.release();
  }
}
