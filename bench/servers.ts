import { execFile, execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import autocannon from 'autocannon';
import { freePort } from '../dev/system/listen';
import { responds, type StartedProcess, startProcess } from '../dev/system/start-process';
import { withoutServiceVariables } from '../tests/harness/build';
import { SIGNING_SECRET } from '../tests/harness/keys';
import { LIVE_KEYS, type TestDependencies } from '../tests/harness/service';
import type { BenchRequest } from './requests';

/** An application to measure: this service, another version of it, or a baseline. */
export interface Application {
  readonly title: string;
  readonly folder: string;
  /** Shell commands that build and start the application. The started server reads its port from PORT. */
  readonly build: string;
  readonly start: string;
  readonly environment: Readonly<Record<string, string>>;
}

export interface Server extends Pick<StartedProcess, 'pid' | 'stop'> {
  readonly url: string;
}

export const baseline = (name: string, environment: Application['environment'] = {}): Application => ({
  title: name,
  folder: path.resolve('bench/baselines', name),
  build: 'next build',
  start: 'next start -H localhost',
  environment,
});

/** The application that a tutorial would make, with variables for the dependencies. */
export const tutorial = ({ environment, idp }: TestDependencies): Application =>
  baseline('tutorial', {
    ...environment,
    CLERK_SECRET_KEY: LIVE_KEYS.secretKey,
    NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY: LIVE_KEYS.publishableKey,
    CLERK_JWT_KEY: idp.publicKeyPem,
    CLERK_TELEMETRY_DISABLED: '1',
    WEBHOOK_SIGNING_SECRET: SIGNING_SECRET,
  });

/**
 * Copies the service's packages for the baselines, so that their versions are the same. Turbopack does not follow links to
 * folders outside of its root. Hard links take no space.
 */
export function copyPackages(): void {
  const copy = 'rm -rf node_modules generated && cp -al ../../node_modules ../../lib/generated .';
  execFileSync('sh', ['-c', copy], { cwd: 'bench/baselines' });
}

const optionsFor = ({ folder, environment }: Application) => ({
  cwd: folder,
  env: {
    ...withoutServiceVariables(),
    ...environment,
    PATH: `node_modules/.bin:../node_modules/.bin:${process.env['PATH']}`,
  },
});

export async function build(application: Application): Promise<void> {
  await promisify(execFile)('sh', ['-c', application.build], optionsFor(application));
}

/** Starts an application. Resolves after the response to the request, which is the first one of the process. */
export async function start(application: Application, request: BenchRequest): Promise<Server> {
  const port = await freePort();
  const { cwd, env } = optionsFor(application);
  // `exec` replaces the shell, so that `pid` is the id of the Node.js process.
  const { pid, ready, stop } = startProcess('sh', ['-c', `exec ${application.start}`], {
    cwd,
    env: { ...env, PORT: String(port) },
    // Hosting platforms read the log through a pipe. The CPU time includes the writes to this pipe.
    output: 'capture',
  });
  const url = `http://localhost:${port}`;
  const { path: address, status, ...init } = request;
  await ready(() => responds(url + address, init));
  return { url, pid, stop };
}

/** Returns the CPU time (user and system) that the current threads of a process have used. */
const cpuMilliseconds = ({ pid }: Server): number =>
  readdirSync(`/proc/${pid}/task`)
    .map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'))
    // The first field is the CPU time in nanoseconds.
    .reduce((sum, schedstat) => sum + Number(schedstat.split(' ')[0]) / 1e6, 0);

/** Returns the resident memory of a process in MiB. */
export const residentMegabytes = ({ pid }: Server): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

export const CONNECTIONS = 32;
/** Number of requests before the measured ones, because an idle process is slow at first. */
const UNMEASURED = 200;

/**
 * Sends the unmeasured requests and then `count` requests. Returns the CPU time of the server per measured request, in
 * milliseconds. Rejects if a response has an unexpected status.
 */
export async function cpuPerRequest(
  server: Server,
  makeRequest: () => BenchRequest,
  count: number,
): Promise<number> {
  const requests = Array.from({ length: UNMEASURED + count }, makeRequest);
  const queue = requests.values();
  let sent = 0;
  let before = 0;
  const { statusCodeStats, errors } = await autocannon({
    url: server.url,
    connections: CONNECTIONS,
    amount: requests.length,
    sampleInt: 50, // maximum delay, in milliseconds, between the last response and the end of the run
    requests: [
      {
        setupRequest(defaults) {
          sent += 1;
          if (sent === UNMEASURED) before = cpuMilliseconds(server);
          return { ...defaults, ...queue.next().value };
        },
      },
    ],
  });
  const after = cpuMilliseconds(server);
  const statuses = Object.keys(statusCodeStats ?? {}).join();
  if (errors > 0 || statuses !== String(requests[0]?.status))
    throw new Error(`${requests[0]?.path}: ${errors} failed requests, and statuses ${statuses}`);
  return (after - before) / count;
}
