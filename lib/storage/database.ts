import { PrismaPg } from '@prisma/adapter-pg';
import { attachDatabasePool } from '@vercel/functions';
import { Pool } from 'pg';
import * as z from 'zod/mini';
import { onShutdown } from '../concurrency/shutdown';
import { parseEnvironmentSubset, variables } from '../env';
import { describeError } from '../errors/describe-error';
import { PrismaClient } from '../generated/prisma/client';
import { log } from '../log';

/**
 * Maximum wait for a connection: to open one, or in a burst for a free one. A compute that scales to zero accepts the
 * connection at once and responds after it has started, which takes up to several seconds. The value stays below the
 * deadline of a registration.
 */
const CONNECT_TIMEOUT_MS = 7_000;
/** Maximum wait for a query. No other limit ends a query on a connection whose packets are lost. */
const QUERY_TIMEOUT_MS = 3_000;
/**
 * On Vercel, `attachDatabasePool` keeps an instance awake until its connections have been idle for this long, and the
 * platform charges its memory meanwhile. Twice the timeout is twice that charge; a shorter one means that more requests
 * open a connection (docs/performance/notes.md has the cost).
 */
const IDLE_TIMEOUT_MS = 5_000;
/** Maximum number of connections of one process. */
export const MAX_CONNECTIONS = 10;

function connect() {
  const pool = new Pool({
    connectionString: parseEnvironmentSubset(z.pick(variables, { DATABASE_URL: true })).DATABASE_URL,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    max: MAX_CONNECTIONS,
  });
  // An idle connection that breaks is replaced on next use; without a listener it would end the process.
  pool.on('error', (error) => log.warn({ error: describeError(error) }, 'idle database connection lost'));
  attachDatabasePool(pool);
  onShutdown(closeDatabase);
  return { pool, prisma: new PrismaClient({ adapter: new PrismaPg(pool) }) };
}

declare global {
  /** Next.js bundles the start-up apart from the routes: a variable of this module would not be the same in both. */
  var databaseConnection: ReturnType<typeof connect> | undefined;
}

function connection(): ReturnType<typeof connect> {
  globalThis.databaseConnection ??= connect();
  return globalThis.databaseConnection;
}

/**
 * This process's one Prisma client, made on first use. Every query ends within the time-outs above, or fails.
 * It works behind a transaction pooler: no session settings, no named statements.
 */
export function database(): PrismaClient {
  return connection().prisma;
}

/**
 * Resolves if the database answers. Waits for a connection as every query does, then holds it so many milliseconds at most;
 * rejects if either takes longer.
 */
export async function pingDatabase(milliseconds: number): Promise<void> {
  // Heeded for one query as well, which the driver's types do not tell.
  const question = { text: 'SELECT 1', query_timeout: milliseconds };
  await connection().pool.query(question);
}

/** One connection, for questions of an operator that one and the same has to answer. */
interface Session {
  /** The id of the server's process, as it was said when the connection was opened; a pooler says one of its own. */
  readonly announcedProcess: number | undefined;
  rows(statement: string): Promise<unknown[]>;
}

const Announced = z.object({ processID: z.number() });

/** Lends a connection, and closes it afterwards. It was opened, and answers, within the time-outs above. */
export async function withSession<T>(use: (session: Session) => Promise<T>): Promise<T> {
  const client = await connection().pool.connect();
  try {
    return await use({
      announcedProcess: Announced.safeParse(client).data?.processID,
      rows: async (statement) => (await client.query(statement)).rows,
    });
  } finally {
    client.release(true);
  }
}

/** Closes the connections, each once the query on it is done. A request that still comes opens one of its own. */
export async function closeDatabase(): Promise<void> {
  const leaving = globalThis.databaseConnection;
  globalThis.databaseConnection = undefined;
  await leaving?.pool.end();
}
