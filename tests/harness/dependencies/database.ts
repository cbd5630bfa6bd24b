import { randomBytes } from 'node:crypto';
import { Client, escapeIdentifier, Pool } from 'pg';
import type { Kind } from '#lib/core/ports';
import { KINDS } from '#lib/ids/store';
import { waitUntil } from '../../../dev/system/processes';
import { startTcpProxy } from './tcp-proxy';

/** Collects the statements of the PostgreSQL messages Parse and Query. */
function statementReader(statements: string[]): (chunk: Buffer) => void {
  // Assumes that no message spans two chunks. The service's messages are much shorter than a TCP segment on loopback (64 KB).
  return (chunk) => {
    for (let at = 0; at + 5 <= chunk.length; ) {
      const type = chunk.toString('latin1', at, at + 1);
      const length = chunk.readUInt32BE(at + 1);
      const [first = '', second = ''] = chunk.toString('utf8', at + 5, at + 1 + length).split('\0');
      if (type === 'P') statements.push(second.trim());
      if (type === 'Q') statements.push(first.trim());
      if (!/^[A-Za-z]$/.test(type)) return; // Start-up messages have no type byte.
      at += 1 + length;
    }
  };
}

/** A PostgreSQL server with a migrated template database. Each test database is a copy of this template. */
export interface DatabaseServer {
  readonly url: string;
  readonly template: string;
}

/** Name of the template database. Each new PostgreSQL server contains it, and `CREATE DATABASE` copies it by default. */
export const TEMPLATE = 'template1';

/** Environment variable that passes the address of the server to the test workers. */
export const SERVER_VARIABLE = 'TESTS_POSTGRES_URL';

/** Returns the PostgreSQL server of this test run. */
export function serverOfThisRun(): DatabaseServer {
  const url = process.env[SERVER_VARIABLE];
  if (url === undefined) throw new Error('This test run has no database server');
  return { url, template: TEMPLATE };
}

/** Direct access of a test to the links of users or tenants. */
function accessLinks(pool: Pool, kind: Kind) {
  const { table, column } = KINDS[kind];
  return {
    /** Returns the internal ids of all rows with this id of the identity provider. */
    async idsOf(providerId: string) {
      const statement = `SELECT id FROM ${table} WHERE ${column} = $1`;
      return (await pool.query<{ id: string }>(statement, [providerId])).rows.map(({ id }) => id);
    },
    /** Inserts a row for each of these ids of the identity provider. */
    async link(...ids: string[]) {
      const statement = `INSERT INTO ${table} (id, ${column}) SELECT gen_random_uuid(), unnest($1::text[])`;
      await pool.query(statement, [ids]);
    },
    /** Stores for a day that these ids are forgotten. Does not delete their rows. */
    async markForgotten(...ids: string[]) {
      await pool.query(
        `INSERT INTO forgotten_users
         SELECT forgotten_hash($2, id), now(), now() + interval '1 day' FROM unnest($1::text[]) AS id`,
        [ids, kind],
      );
    },
  };
}

export type DatabaseAccess = ReturnType<typeof accessDatabase>;

/** Returns direct access to a database of the service. Its own functions for links are those for users. The caller ends the pool. */
export function accessDatabase(connectionString: string) {
  const pool = new Pool({ connectionString, max: 6 });
  const blockedSessions = async () => {
    const { rowCount } = await pool.query(
      `SELECT FROM pg_stat_activity
       WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`,
    );
    return rowCount ?? 0;
  };
  // If a test stops the server, the server closes the idle connections, and the pool emits `error`. Without a listener, this
  // event would end the process. The next query opens a new connection.
  pool.on('error', () => undefined);
  return {
    /** Connections that do not use the proxy of the database. */
    pool,
    of: (kind: Kind) => accessLinks(pool, kind),
    ...accessLinks(pool, 'user'),
    /** Returns the identity-provider ids of all users that match the LIKE pattern, sorted. */
    async users(pattern = '%') {
      const statement =
        'SELECT identity_provider_user_id AS id FROM users WHERE identity_provider_user_id LIKE $1';
      return (await pool.query<{ id: string }>(statement, [pattern])).rows.map(({ id }) => id).sort();
    },
    /** Returns true if a session of the database waits for a lock. */
    isBlocked: async () => (await blockedSessions()) > 0,
    /** Resolves to true once at least this number of sessions of the database wait for a lock, or to false after 10 s. */
    areBlocked: (sessions: number) => waitUntil(async () => (await blockedSessions()) >= sessions, 10_000),
  };
}

/** Password of the roles that `createRole()` creates. */
export const ROLE_PASSWORD = 'hidden-password-of-a-role';

/** Runs a statement on a connection of its own. Returns the rows. */
export async function query(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url });
  try {
    await client.connect();
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}

export type TestDatabase = Awaited<ReturnType<typeof createTestDatabase>>;

/** Creates a copy of the template database for one test file, behind a proxy that records statements. */
export async function createTestDatabase({ url, template }: DatabaseServer = serverOfThisRun()) {
  const server = new URL(url);
  const name = `test_${randomBytes(6).toString('hex')}`;
  const administer = (statement: string) => query(server.href, statement);
  await administer(`CREATE DATABASE ${escapeIdentifier(name)} TEMPLATE ${escapeIdentifier(template)}`);
  const direct = new URL(server);
  direct.pathname = name;
  const proxy = await startTcpProxy({ host: server.hostname, port: Number(server.port) });
  const statements: string[] = [];
  proxy.onClientData = statementReader(statements);
  const proxied = new URL(direct);
  proxied.port = String(proxy.port);
  const access = accessDatabase(direct.href);
  const takeStatements = () => statements.splice(0);
  const roles: string[] = [];
  return {
    ...access,
    /** Connection string of the service. It contains the address of `proxy`. */
    url: proxied.href,
    proxy,
    /** Returns the SQL statements that clients of `url` sent since the last call. */
    takeStatements,
    /** Does the same as `takeStatements()`, but returns only the first word of each statement. */
    takeVerbs: () => takeStatements().map((statement) => statement.split(' ', 1)[0] ?? ''),
    /** Runs ALTER DATABASE. A changed setting applies to new connections. */
    alter: (change: string) => administer(`ALTER DATABASE ${escapeIdentifier(name)} ${change}`),
    /**
     * Creates a role that may log in, and runs statements in which `$role` stands for its name. Returns the name, and the
     * connection string of the service as this role. `drop()` also drops the role.
     */
    async createRole(rights: string) {
      const role = `role_${randomBytes(6).toString('hex')}`;
      await access.pool.query(`CREATE ROLE ${role} LOGIN PASSWORD '${ROLE_PASSWORD}'`);
      roles.push(role);
      await access.pool.query(rights.replaceAll('$role', role));
      return { role, url: Object.assign(new URL(proxied), { username: role, password: ROLE_PASSWORD }).href };
    },
    async drop() {
      await proxy.stop();
      await access.pool.end();
      await administer(`DROP DATABASE ${escapeIdentifier(name)} WITH (FORCE)`);
      for (const role of roles) await administer(`DROP ROLE ${role}`);
    },
  };
}
