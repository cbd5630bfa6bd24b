import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { type Clock, type Emulator, startEmulator } from 'clerk-emulator';
import { checkResponse } from 'clerk-emulator/testing';
import { memoryEngine } from '../../dev/kv/memory';
import { redisEngine } from '../../dev/kv/redis';
import { type KvEngine, startKvServer } from '../../dev/kv/server';
import { clerkJsFolder } from '../../dev/stack/settings';
import { freePort } from '../../dev/system/listen';
import { endProcess, killOnExit, waitUntil } from '../../dev/system/processes';
import { BUILD_FOLDER, withoutServiceVariables } from './build';
import { createTestDatabase, type DatabaseServer, type TestDatabase } from './parts/database';
import { startRedis } from './parts/redis';
import { SIGNING_KEY_PEM } from './parts/signing-key';
import { type Address, startTcpProxy, type TcpProxy } from './parts/tcp-proxy';

export const SECRET_KEY = 'sk_test_c2VjcmV0b2Z0aGVzdGFuZGlu';
export const PUBLISHABLE_KEY = `pk_test_${Buffer.from('tests.clerk.accounts.dev$').toString('base64')}`;
/** A browser is recognised in another way by each. */
const KEYS = {
  test: { secretKey: SECRET_KEY, publishableKey: PUBLISHABLE_KEY },
  live: {
    secretKey: 'sk_live_c2VjcmV0b2Z0aGVzdGFuZGlu',
    publishableKey: `pk_live_${Buffer.from('clerk.tests.example$').toString('base64')}`,
  },
} as const;
export const SIGNING_SECRET = `whsec_${Buffer.from('a signing secret for tests only!').toString('base64')}`;

/** One `next start` of the production build. */
export interface ServiceProcess {
  readonly url: string;
  readonly pid: number;
  /** Everything that the process wrote so far, to standard output and standard error. */
  output(): string;
  /** Resolves with the exit code, or null if a signal ended the process. */
  readonly exited: Promise<number | null>;
  /** Ends the process, and then rejects if it printed a secret, a session token or an e-mail address. */
  stop(): Promise<void>;
}

/** What the service runs over, all of it real. */
export interface TestParts {
  readonly database: TestDatabase;
  readonly idp: Emulator;
  readonly kv: {
    readonly engine: KvEngine;
    readonly proxy: TcpProxy;
    /** Of the KV server, where the proxy leads. */
    readonly address: Address;
    /** The commands that reached the KV server since the last call. */
    takeCommands(): string[][];
  };
  /** The variables that a process is started with. */
  readonly environment: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** The service over parts that are all of this test file's own. */
export interface TestService extends TestParts {
  /** Address of the first process. */
  readonly url: string;
  readonly processes: readonly ServiceProcess[];
  /** Everything that the processes wrote so far. */
  output(): string;
  /** The lines of it that hold a text. */
  linesWith(text: string): string[];
}

/**
 * The tests run over server.ts. With SERVICE_MODE=next they run over `next start`, as on a platform that has no place for
 * server.ts, and with SERVICE_MODE=dev over `next dev`, one test file at a time.
 */
const MODE = process.env['SERVICE_MODE'];
const NEXT = 'node_modules/next/dist/bin/next';

/** The arguments of Node.js that start the service in a checkout. Release 1.0.0 has no server.ts. */
function programOf(checkout: string): string[] {
  const server = `${BUILD_FOLDER}/server.mjs`;
  if (MODE === 'dev') return [NEXT, 'dev', '-H', 'localhost'];
  return MODE === 'next' || !existsSync(path.join(checkout, server))
    ? [NEXT, 'start', '-H', 'localhost']
    : [server];
}

/** A token of three parts, and an e-mail address. */
const PRIVATE = [/eyJ[\w-]+\.[\w-]*\./, /[\w.+-]+@(?:[a-z\d-]+\.)+[a-z]{2,}/i];

/** The lines that hold a secret of the process, a session token or an e-mail address. */
export function indiscreetLines(output: string, environment: Readonly<Record<string, string>>): string[] {
  const {
    IDP_SECRET_KEY = '',
    IDP_WEBHOOK_SIGNING_SECRET = '',
    KV_REST_API_TOKEN = '',
    DATABASE_URL = '',
  } = environment;
  const password = /:([^:@]+)@/.exec(DATABASE_URL)?.[1] ?? '';
  const signingSecrets = IDP_WEBHOOK_SIGNING_SECRET.split(/\s+/).map((word) => word.replace('whsec_', ''));
  const secrets = [IDP_SECRET_KEY, ...signingSecrets, KV_REST_API_TOKEN, DATABASE_URL, password].filter(
    Boolean,
  );
  return output
    .split('\n')
    .filter(
      (line) =>
        PRIVATE.some((pattern) => pattern.test(line)) || secrets.some((secret) => line.includes(secret)),
    );
}

/** Starts Next.js of a checkout that was built, and resolves once it answers; rejects with its output if it ends instead. */
export async function startServiceProcess(
  environment: Readonly<Record<string, string>>,
  checkout = '.',
  ownPort?: number,
): Promise<ServiceProcess> {
  const port = ownPort ?? (await freePort());
  const child = spawn(process.execPath, [...programOf(checkout), '-p', String(port)], {
    cwd: checkout,
    env: {
      ...withoutServiceVariables(),
      NODE_ENV: MODE === 'dev' ? 'development' : 'production',
      NEXT_DIST_DIR: BUILD_FOLDER,
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error('next start could not be run');
  const forget = killOnExit(pid, 'SIGTERM');
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  let running = true;
  const exited = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => {
      running = false;
      forget();
      resolve(code);
    });
  });
  const url = `http://localhost:${port}`;
  const output = () => Buffer.concat(chunks).toString();
  // An unknown API path passes the middleware and the router, and touches neither cache nor database.
  const answers = () =>
    fetch(`${url}/users/v1/start-up`, { signal: AbortSignal.timeout(20_000) }).then(
      async (response) => {
        await response.arrayBuffer();
        return true;
      },
      () => false,
    );
  const up = await waitUntil(async () => !running || (await answers()), 60_000);
  if (!running || !up) {
    if (running) await endProcess(pid, []);
    throw new Error(`next start did not come up:\n${output()}`);
  }
  return {
    url,
    pid,
    output,
    exited,
    async stop() {
      // At SIGTERM it waits a second for clients whose connections idle, as those of tests do.
      await endProcess(pid, [{ signal: 'SIGINT', milliseconds: 5_000 }]);
      // `next dev` prints the address of each request, in which the provider's SDK passes tokens.
      const indiscreet = MODE === 'dev' ? [] : indiscreetLines(output(), environment);
      if (indiscreet.length > 0)
        throw new Error(`The service printed what is private:\n${indiscreet.join('\n')}`);
    },
  };
}

export interface TestPartsOptions {
  /** Over the defaults; an empty value unsets a variable. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Where the database is made; absent: on the test run's server. */
  readonly server?: DatabaseServer;
  /** What DATABASE_URL says, if it is not the database's own `url`: another role, or a pooler in between. */
  readonly databaseUrl?: (database: TestDatabase) => string | Promise<string>;
  /** The style of the identity provider's keys; IDP_KEY_STYLE, or of a development instance, unless told. */
  readonly keys?: keyof typeof KEYS;
  /** Of the identity provider; with one, its retry delays are the real ones. */
  readonly clock?: Clock;
}

export interface TestServiceOptions extends TestPartsOptions {
  readonly processes?: number;
  /** The folder of another checkout, which was built and runs instead of this one. */
  readonly checkout?: string;
}

/**
 * Starts a database, a cache and an identity provider. With KV_ENGINE=redis the KV server keeps its data in a real Redis of
 * the test's own.
 */
export async function startParts({
  environment: overrides = {},
  server,
  databaseUrl = ({ url }) => url,
  keys = process.env['IDP_KEY_STYLE'] === 'live' ? 'live' : 'test',
  clock,
}: TestPartsOptions = {}): Promise<TestParts> {
  const [database, idp] = await Promise.all([
    createTestDatabase(server),
    startEmulator({
      ...KEYS[keys],
      signingKeyPem: SIGNING_KEY_PEM,
      webhook: undefined,
      clerkJsFolder,
      onResponse: checkResponse,
      ...(clock ? { clock, retryScale: 1 } : { retryScale: 0.001 }),
    }),
  ]);
  const commands: string[][] = [];
  const redis = process.env['KV_ENGINE'] === 'redis' ? await startRedis() : undefined;
  const engine = redis ? redisEngine(redis.url) : memoryEngine();
  const kvServer = await startKvServer({
    token: 'kv-token-of-the-tests',
    engine,
    onCommand: (command, args) => commands.push([command, ...args]),
  });
  const kvAddress = new URL(kvServer.url);
  const address = { host: kvAddress.hostname, port: Number(kvAddress.port) };
  const kvProxy = await startTcpProxy(address);
  const environment = {
    IDP_SECRET_KEY: KEYS[keys].secretKey,
    IDP_PUBLISHABLE_KEY: KEYS[keys].publishableKey,
    IDP_WEBHOOK_SIGNING_SECRET: SIGNING_SECRET,
    IDP_JWT_KEY: idp.publicKeyPem,
    DATABASE_URL: await databaseUrl(database),
    KV_REST_API_URL: `http://127.0.0.1:${kvProxy.port}`,
    KV_REST_API_TOKEN: kvServer.token,
    CLERK_API_URL: idp.url,
    CLERK_FAPI_URL: idp.url,
    ...overrides,
  };
  return {
    database,
    idp,
    kv: { engine, proxy: kvProxy, address, takeCommands: () => commands.splice(0) },
    environment,
    async stop() {
      await idp.stop();
      await kvProxy.stop();
      await kvServer.stop();
      await redis?.stop();
      await database.drop();
    },
  };
}

/** Starts one or more processes of the service over one database, one cache and one identity provider. */
export async function startTestService({
  processes: count = 1,
  checkout,
  ...options
}: TestServiceOptions = {}): Promise<TestService> {
  const parts = await startParts(options);
  const { environment, idp } = parts;
  const processes = await Promise.all(
    Array.from({ length: count }, () => startServiceProcess(environment, checkout)),
  );
  const [first] = processes;
  if (!first) throw new Error('A service has at least one process');
  const output = () => processes.map((process) => process.output()).join('\n');
  idp.webhooks.setEndpoint({ url: `${first.url}/webhooks/idp/v1/user-created`, secrets: [SIGNING_SECRET] });
  return {
    ...parts,
    url: first.url,
    processes,
    output,
    linesWith: (text) =>
      output()
        .split('\n')
        .filter((line) => line.includes(text)),
    async stop() {
      // Deliveries end before those who answer them.
      await idp.stop();
      const stopped = await Promise.allSettled(processes.map((process) => process.stop()));
      await parts.stop();
      for (const each of stopped) if (each.status === 'rejected') throw each.reason;
    },
  };
}
