import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Emulator } from 'clerk-emulator';
import { freePort } from '../../dev/system/listen';
import { responds, startProcess } from '../../dev/system/start-process';
import { BUILD_FOLDER, withoutServiceVariables } from './build';
import {
  createTestDatabase,
  type DatabaseAccess,
  type DatabaseServer,
  type TestDatabase,
} from './dependencies/database';
import { startTestKv } from './dependencies/kv';
import { startProvider } from './identity-provider';
import { PUBLISHABLE_KEY, SECRET_KEY, SIGNING_SECRET } from './keys';

/** Keys of a production instance of the identity provider. */
export const LIVE_KEYS = {
  secretKey: 'sk_live_c2VjcmV0b2Z0aGVzdGFuZGlu',
  publishableKey: `pk_live_${Buffer.from('clerk.tests.example$').toString('base64')}`,
} as const;
/** Keys of a development instance (`test`) and of a production instance (`live`) of the identity provider. */
const KEYS = {
  test: { secretKey: SECRET_KEY, publishableKey: PUBLISHABLE_KEY },
  live: LIVE_KEYS,
} as const;

/** Returns the environment variables that connect the service to an instance of the identity provider with these keys. */
export const providerVariables = (
  { secretKey, publishableKey }: (typeof KEYS)['test' | 'live'],
  { url, publicKeyPem }: Emulator,
) => ({
  IDP_SECRET_KEY: secretKey,
  IDP_PUBLISHABLE_KEY: publishableKey,
  IDP_JWT_KEY: publicKeyPem,
  CLERK_API_URL: url,
  CLERK_FAPI_URL: url,
});

/** What a test needs to send requests to a running service and to check the effects. */
export interface ServiceAccess {
  /** Address of the first process. */
  readonly url: string;
  readonly processes: readonly Pick<ServiceProcess, 'url' | 'pid'>[];
  readonly environment: Readonly<Record<string, string>>;
  /** Issuer and signing key of the session tokens that the service accepts. */
  readonly idp: Pick<Emulator, 'issuer' | 'signingKey'>;
  readonly database: DatabaseAccess;
  /** Returns the output of all processes so far. */
  output(): string;
  /** Returns the lines of the output that contain a text. */
  linesWith(text: string): string[];
}

/** Patterns of a JWT and of an email address. */
const PRIVATE = [/eyJ[\w-]+\.[\w-]*\./, /[\w.+-]+@(?:[a-z\d-]+\.)+[a-z]{2,}/i];

/** Returns the lines that contain a secret of the process, a session token or an email address. */
function findPrivateLines(output: string, environment: Readonly<Record<string, string>>): string[] {
  const { IDP_SECRET_KEY, IDP_WEBHOOK_SIGNING_SECRET, KV_REST_API_TOKEN, DATABASE_URL = '' } = environment;
  const signingSecrets = IDP_WEBHOOK_SIGNING_SECRET?.replaceAll('whsec_', '').split(' ') ?? [];
  const password = /:([^:@]+)@/.exec(DATABASE_URL)?.[1];
  const secrets = [IDP_SECRET_KEY, ...signingSecrets, KV_REST_API_TOKEN, DATABASE_URL, password].filter(
    Boolean,
  );
  const isPrivate = (line: string) =>
    PRIVATE.some((pattern) => pattern.test(line)) || secrets.some((secret) => line.includes(secret ?? ''));
  return output.split('\n').filter(isPrivate);
}

export type ServiceProcess = Awaited<ReturnType<typeof startServiceProcess>>;

/** Starts a process of the service. Resolves once the service responds. Rejects if it exits or does not respond. */
export async function startServiceProcess(
  environment: Readonly<Record<string, string>>,
  fixedPort?: number,
  program: readonly string[] = [`${BUILD_FOLDER}/server.mjs`],
) {
  const port = fixedPort ?? (await freePort());
  const outputFile = path.join(mkdtempSync(path.join(os.tmpdir(), 'identity-link-tests-output-')), 'output');
  const { pid, output, exited, ready, stop } = startProcess(
    process.execPath,
    [...program, '-p', String(port)],
    {
      env: { ...withoutServiceVariables(), NEXT_DIST_DIR: BUILD_FOLDER, ...environment },
      output: { file: outputFile },
      // SIGINT ends the service immediately. On SIGTERM, it would wait for the idle connections of the test.
      signal: 'SIGINT',
    },
  );
  const url = `http://localhost:${port}`;
  // A response to an unknown API path shows that the middleware and the router work. The request does not use the cache or the
  // database, so the start does not depend on them.
  await ready(() => responds(`${url}/users/v1/start-up`));
  return {
    url,
    pid,
    /** File that contains the standard output and standard error. */
    outputFile,
    output,
    exited,
    /** Stops the process. Rejects if it printed a secret, a session token or an email address. */
    async stop() {
      await stop();
      const lines = findPrivateLines(output(), environment);
      rmSync(path.dirname(outputFile), { recursive: true });
      if (lines.length > 0) throw new Error(`The service printed private data:\n${lines.join('\n')}`);
    },
  };
}

interface TestDependenciesOptions {
  /** Overrides of the defaults. An empty value unsets a variable. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Server that hosts the database. The default is the server of the test run. */
  readonly server?: DatabaseServer;
  /** Returns the value of DATABASE_URL, which may name another role or a pooler. The default is the `url` of the database. */
  readonly databaseUrl?: (database: TestDatabase) => string | Promise<string>;
  /** Kind of the identity provider's instance. The default is `test`. */
  readonly keys?: keyof typeof KEYS;
}

export interface TestServiceOptions extends TestDependenciesOptions {
  readonly processes?: number;
  /** Port of the only process. Default: a free one. */
  readonly port?: number;
}

export type TestDependencies = Awaited<ReturnType<typeof startDependencies>>;

/** Creates a database, and starts an emulator of the identity provider and a KV server, which is the cache. */
export async function startDependencies({
  environment: overrides = {},
  server,
  databaseUrl = ({ url }) => url,
  keys = 'test',
}: TestDependenciesOptions = {}) {
  const [database, idp, kv] = await Promise.all([
    createTestDatabase(server),
    // Each delay of the webhook retries is a thousandth of Clerk's delay.
    startProvider({ ...KEYS[keys], retryScale: 0.001 }),
    startTestKv(),
  ]);
  const environment: Readonly<Record<string, string>> = {
    ...providerVariables(KEYS[keys], idp),
    IDP_WEBHOOK_SIGNING_SECRET: SIGNING_SECRET,
    DATABASE_URL: await databaseUrl(database),
    ...kv.environment,
    ...overrides,
  };
  return {
    database,
    idp,
    kv,
    /** Environment variables of each process of the service. */
    environment,
    async stop() {
      await idp.stop();
      await kv.stop();
      await database.drop();
    },
  };
}

/** Returns functions that read the output of processes of the service. */
export function readOutput(
  processes: readonly Pick<ServiceProcess, 'outputFile'>[],
): Pick<ServiceAccess, 'output' | 'linesWith'> {
  const output = () => processes.map(({ outputFile }) => readFileSync(outputFile, 'utf8')).join('\n');
  return {
    output,
    linesWith: (text) =>
      output()
        .split('\n')
        .filter((line) => line.includes(text)),
  };
}

export type TestService = Awaited<ReturnType<typeof startTestService>>;

/** Starts one or more processes of the service with one database, one cache and one identity provider. */
export async function startTestService({ processes: count = 1, port, ...options }: TestServiceOptions = {}) {
  const dependencies = await startDependencies(options);
  const { environment, idp } = dependencies;
  const processes = await Promise.all(
    Array.from({ length: count }, () => startServiceProcess(environment, port)),
  );
  const [first] = processes;
  if (!first) throw new Error('The number of processes must be at least 1');
  idp.webhooks.setEndpoint({ url: `${first.url}/webhooks/idp/v1/user-created`, secrets: [SIGNING_SECRET] });
  return {
    ...dependencies,
    url: first.url,
    processes,
    ...readOutput(processes),
    async stop() {
      // The identity provider stops first, so that it does not deliver webhooks to a stopped service.
      await idp.stop();
      const stopped = await Promise.allSettled(processes.map((process) => process.stop()));
      await dependencies.stop();
      for (const each of stopped) if (each.status === 'rejected') throw each.reason;
    },
  };
}
