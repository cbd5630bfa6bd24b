import { PrismaPg } from '@prisma/adapter-pg';
import { attachDatabasePool } from '@vercel/functions';
import { Client, DatabaseError, Pool } from 'pg';
import * as z from 'zod/mini';
import { databaseOptions } from '../base/database-url';
import { parseEnvironmentSubset, variables } from '../base/env';
import { describeError } from '../base/errors';
import { log } from '../base/log';
import { processState } from '../base/process-state';
import { onShutdown } from '../base/shutdown';
import { fieldsOf } from '../core/values';
import { Prisma, PrismaClient } from '../generated/prisma/client';

/** Maximum time to open a connection, for which a suspended database has to start, and maximum wait for a free connection. */
const CONNECT_TIMEOUT_MS = 7_000;
/** Maximum wait for a query. No other limit ends a query on a connection whose packets are lost. */
const QUERY_TIMEOUT_MS = 3_000;
/** Maximum duration of a transaction, without the wait for its connection, and of a pause between two of its statements. */
const TRANSACTION_TIMEOUT_MS = 8_000;
/** Time by which PostgreSQL ends a statement of a transaction before this process stops waiting for it. */
const SERVER_FIRST_MS = 500;
/** Maximum duration of a query or transaction after `waitForLongQueries`. */
const PATIENT_TIMEOUT_MS = 600_000;
/** On Vercel, `attachDatabasePool` keeps an instance awake, at a charge, until its connections have been idle for this long. */
const IDLE_TIMEOUT_MS = 5_000;
/** A connection keeps the settings of the database from the time when it was opened, so a busy one is replaced too. */
const MAX_LIFETIME_SECONDS = 60;
/** Maximum number of connections of one process. */
const MAX_CONNECTIONS = 10;

/** The client of a transaction. */
export type Transaction = Prisma.TransactionClient;

/** `sql` creates a part of a statement, whose values are parameters. `raw` creates one from a name of our own. */
export const { raw, sql } = Prisma;

/**
 * Returns the first statement of a transaction. PostgreSQL ends a statement of it before this process stops waiting, and ends a
 * transaction whose process is suspended. A transaction pooler keeps these settings, because they are local to the transaction.
 */
const begin = () => `BEGIN TRANSACTION; SET LOCAL statement_timeout = ${queryTimeout() - SERVER_FIRST_MS};
  SET LOCAL idle_in_transaction_session_timeout = ${TRANSACTION_TIMEOUT_MS}`;

/** A connection that ends when a query exceeds `query_timeout`, because the server may still run this query. */
class Connection extends Client {
  override query(first: unknown, ...others: readonly unknown[]) {
    const config = fieldsOf(first);
    // Prisma begins a transaction with this statement. The settings therefore need no round trip.
    const query = config['text'] === 'BEGIN' ? { ...config, text: begin() } : first;
    const result = Reflect.apply(super.query, this, [query, ...others]);
    if (!(result instanceof Promise)) return result;
    return result.catch((error: Error) => {
      if (error.message === 'Query read timeout') void this.end();
      // Prisma drops this field.
      if (error instanceof DatabaseError && error.table) error.message += ` (table: ${error.table})`;
      throw error;
    });
  }
}

function connect() {
  const pool = new Pool({
    ...databaseOptions(parseEnvironmentSubset(z.pick(variables, { DATABASE_URL: true })).DATABASE_URL),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: queryTimeout(),
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    maxLifetimeSeconds: MAX_LIFETIME_SECONDS,
    max: MAX_CONNECTIONS,
    Client: Connection,
  });
  // Prisma releases a connection even if its COMMIT or ROLLBACK failed. The pool discards a connection that is ending.
  pool.on('release', (_error, client) => {
    const isUnused = client.getTransactionStatus() === 'I' && fieldsOf(client)['readyForQuery'] === true;
    if (!isUnused) void client.end();
  });
  // The pool replaces an idle connection that breaks. Without a listener, the error would end the process.
  pool.on('error', (error) => log.warn({ error: describeError(error) }, 'idle database connection lost'));
  attachDatabasePool(pool);
  onShutdown(closeDatabase);
  const transactionOptions = {
    maxWait: CONNECT_TIMEOUT_MS,
    timeout: state.isPatient ? PATIENT_TIMEOUT_MS : TRANSACTION_TIMEOUT_MS,
  };
  return { pool, prisma: new PrismaClient({ adapter: new PrismaPg(pool), transactionOptions }) };
}

interface State {
  connection?: ReturnType<typeof connect> | undefined;
  isPatient?: boolean;
}

const state = processState('database', (): State => ({}));

const queryTimeout = () => (state.isPatient ? PATIENT_TIMEOUT_MS : QUERY_TIMEOUT_MS);

/**
 * Lets later queries and transactions of this process, which serves no requests, take ten minutes, as a deletion of many rows
 * may.
 */
export function waitForLongQueries(): void {
  state.isPatient = true;
}

function connection(): ReturnType<typeof connect> {
  state.connection ??= connect();
  return state.connection;
}

/**
 * Returns the Prisma client of this process and creates it on first use. A query or transaction that exceeds the timeouts above
 * fails. The client works with a transaction pooler, because it uses no session settings and no named statements.
 */
export function database(): PrismaClient {
  return connection().prisma;
}

/**
 * Resolves if the database responds to a query within the given time. The wait for a connection does not count. Rejects if the
 * database is read-only, as a standby is. A connection keeps this setting, so those that report it are closed, and the next call
 * opens a new one.
 */
export async function pingDatabase(milliseconds: number): Promise<void> {
  const { pool } = connection();
  // The driver applies `query_timeout` to a single query as well, but its types do not declare this option.
  const query = { text: 'SHOW transaction_read_only', query_timeout: milliseconds };
  do {
    const client = await pool.connect();
    let isUsable = false;
    try {
      const { rows } = await client.query<{ transaction_read_only: string }>(query);
      isUsable = rows[0]?.transaction_read_only === 'off';
    } finally {
      client.release(!isUsable);
    }
    if (isUsable) return;
  } while (pool.idleCount > 0);
  throw Object.assign(new Error('The database is read-only'), { code: '25006' });
}

/**
 * Calls `use` with a function that runs statements on one connection and returns their rows. Closes the connection afterwards.
 * The timeouts above apply.
 */
export async function withConnection<T>(
  use: (rows: (statement: string) => Promise<unknown[]>) => Promise<T>,
): Promise<T> {
  const client = await connection().pool.connect();
  try {
    return await use(async (statement) => (await client.query(statement)).rows);
  } finally {
    client.release(true);
  }
}

/** Closes each connection when its query ends. A later request opens a new pool. */
export async function closeDatabase(): Promise<void> {
  const closing = state.connection;
  state.connection = undefined;
  await closing?.pool.end();
}
