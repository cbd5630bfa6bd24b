import { randomBytes } from 'node:crypto';
import { Client, escapeIdentifier, Pool } from 'pg';
import { startTcpProxy, type TcpProxy } from './tcp-proxy';

export interface TestDatabase {
  /** Through `proxy`, for the service. */
  readonly url: string;
  readonly proxy: TcpProxy;
  /** Direct, for the test. */
  readonly pool: Pool;
  /** The SQL statements that clients of `url` sent since the last call. */
  takeStatements(): string[];
  /** The rows of an identity provider's user: one, if all is well. */
  rowsOf(identityProviderUserId: string): Promise<{ readonly id: string }[]>;
  /** The identity provider's users that have a row, in order; of those whose ids are LIKE the pattern. */
  users(pattern?: string): Promise<string[]>;
  drop(): Promise<void>;
}

/** The frontend messages of the PostgreSQL protocol that carry a statement: Parse and simple Query. */
function statementReader(statements: string[]): (chunk: Buffer) => void {
  // A message never spans two chunks here: statements of this service are far below a segment's size.
  return (chunk) => {
    for (let at = 0; at + 5 <= chunk.length; ) {
      const type = chunk.toString('latin1', at, at + 1);
      const length = chunk.readUInt32BE(at + 1);
      const [first = '', second = ''] = chunk.toString('utf8', at + 5, at + 1 + length).split('\0');
      if (type === 'P') statements.push(second);
      if (type === 'Q') statements.push(first);
      if (!/^[A-Za-z]$/.test(type)) return; // start-up messages have no type byte
      at += 1 + length;
    }
  };
}

/** A PostgreSQL server that has a migrated database to copy. */
export interface DatabaseServer {
  readonly url: string;
  readonly template: string;
}

/** Name of the database, with migrations applied, that every server of tests has. */
export const TEMPLATE = 'template_migrated';

/** Under this name a run of tests hands its server to the processes that run them. */
export const SERVER_VARIABLE = 'TESTS_POSTGRES_URL';

/** The server of this run of tests. */
export function serverOfThisRun(): DatabaseServer {
  const url = process.env[SERVER_VARIABLE];
  if (url === undefined) throw new Error('This run of tests has no database server');
  return { url, template: TEMPLATE };
}

/** A database of its own for one test file: a copy of the migrated template, reached through a proxy that listens in. */
export async function createTestDatabase(
  { url, template }: DatabaseServer = serverOfThisRun(),
): Promise<TestDatabase> {
  const server = new URL(url);
  const name = `test_${randomBytes(6).toString('hex')}`;
  const administer = async (statement: string) => {
    const client = new Client({ connectionString: server.href });
    await client.connect();
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  };
  await administer(`CREATE DATABASE ${escapeIdentifier(name)} TEMPLATE ${escapeIdentifier(template)}`);
  const direct = new URL(server);
  direct.pathname = name;
  const proxy = await startTcpProxy({ host: server.hostname, port: Number(server.port) });
  const statements: string[] = [];
  proxy.onClientData = statementReader(statements);
  const proxied = new URL(direct);
  proxied.port = String(proxy.port);
  const pool = new Pool({ connectionString: direct.href, max: 6 });
  // A server that a test stops breaks idle connections; the next query makes a new one.
  pool.on('error', () => undefined);
  return {
    url: proxied.href,
    proxy,
    pool,
    takeStatements: () => statements.splice(0),
    async rowsOf(identityProviderUserId) {
      const statement = 'SELECT * FROM users WHERE identity_provider_user_id = $1';
      return (await pool.query<{ id: string }>(statement, [identityProviderUserId])).rows;
    },
    async users(pattern = '%') {
      const statement =
        'SELECT identity_provider_user_id AS id FROM users WHERE identity_provider_user_id LIKE $1';
      return (await pool.query<{ id: string }>(statement, [pattern])).rows.map(({ id }) => id).sort();
    },
    async drop() {
      await proxy.stop();
      await pool.end();
      await administer(`DROP DATABASE ${escapeIdentifier(name)} WITH (FORCE)`);
    },
  };
}
