import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { endProcess, killOnExit } from '../../dev/system/processes';

const LAUNCHER = fileURLToPath(new URL('./launcher.mjs', import.meta.url));

/** What the platform is told of a function, as far as it is looked at here. */
const FunctionConfig = z.object({
  handler: z.string(),
  runtime: z.string(),
  launcherType: z.literal('Nodejs'),
  maxDuration: z.optional(z.number()),
  useWebApi: z._default(z.boolean(), false),
  environment: z.record(z.string(), z.string()),
});

export type Headers = Record<string, string | string[]>;

/** One request as the platform hands it to a function. */
interface Invocation {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: Headers;
  readonly body: Buffer;
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** A process of a function. */
interface Instance {
  readonly pid: number;
  /** How many promises that it gave to `waitUntil` are not settled. */
  waiting(): number;
}

/** A built function in a folder of its own. */
export interface BuiltFunction {
  readonly name: string;
  readonly config: z.infer<typeof FunctionConfig>;
  /** Relative to the function's folder. */
  readonly files: readonly string[];
  readonly megabytes: number;
  /** Hands over a request; starts a process where none runs. A process that ends instead of answering is a 500. */
  invoke(invocation: Invocation): Promise<Reply>;
  /** The process that runs. */
  instance(): Instance | undefined;
  /** Everything that its processes wrote. */
  output(): string;
  /** Ends the process; the next request starts another. */
  stop(): Promise<void>;
}

export interface FunctionOptions {
  readonly name: string;
  /** Nothing above it may be ours: modules are found upwards. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Whether the platform's HTTP server is out of the function's sight. */
  readonly apart: boolean;
}

const Message = z.union([z.object({ port: z.number() }), z.object({ waiting: z.number() })]);
const START_MILLISECONDS = 60_000;
/** The platform's own is 15 s (`vercel.json`); this one also bounds what the machine is busy with. */
const ANSWER_MILLISECONDS = 60_000;

interface Running {
  readonly child: ChildProcess;
  readonly instance: Instance;
  readonly port: Promise<number>;
}

function exchange(port: number, { method, url, headers, body }: Invocation): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { host: '127.0.0.1', port, method, path: url, headers, agent: false, timeout: ANSWER_MILLISECONDS },
      async (response) => {
        const chunks: Buffer[] = [];
        try {
          for await (const chunk of response) chunks.push(chunk);
          const given: Headers = {};
          for (const [name, value] of Object.entries(response.headers)) if (value) given[name] = value;
          resolve({ status: response.statusCode ?? 0, headers: given, body: Buffer.concat(chunks) });
        } catch (error) {
          reject(error);
        }
      },
    );
    request.on('timeout', () => request.destroy(new Error(`${method} ${url} was not answered`)));
    request.on('error', reject);
    request.end(body);
  });
}

const FAILED: Reply = {
  status: 500,
  headers: { 'x-vercel-error': 'FUNCTION_INVOCATION_FAILED' },
  body: Buffer.from('FUNCTION_INVOCATION_FAILED'),
};

export function builtFunction({ name, folder, environment, apart }: FunctionOptions): BuiltFunction {
  const config = FunctionConfig.parse(JSON.parse(readFileSync(path.join(folder, '.vc-config.json'), 'utf8')));
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    statSync(path.join(folder, file)).isFile(),
  );
  const chunks: Buffer[] = [];
  let running: Running | undefined;

  function start(): Running {
    const args = [LAUNCHER, config.handler, config.useWebApi ? 'web' : 'node', apart ? 'apart' : 'within'];
    const child = spawn(process.execPath, args, {
      cwd: folder,
      env: { PATH: process.env['PATH'], NODE_ENV: 'production', ...config.environment, ...environment },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const { pid } = child;
    if (pid === undefined) throw new Error(`${name} could not be started`);
    const forget = killOnExit(pid, 'SIGTERM');
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => chunks.push(chunk));
    let waiting = 0;
    const port = new Promise<number>((resolve, reject) => {
      child.on('message', (message) => {
        const told = Message.parse(message);
        if ('port' in told) resolve(told.port);
        else waiting = told.waiting;
      });
      child.once('exit', () => {
        forget();
        if (running?.child === child) running = undefined;
        reject(new Error(`${name} ended at its start`));
      });
      setTimeout(() => reject(new Error(`${name} did not start`)), START_MILLISECONDS).unref();
    });
    return { child, port, instance: { pid, waiting: () => waiting } };
  }

  return {
    name,
    config,
    files,
    megabytes: files.reduce((sum, file) => sum + statSync(path.join(folder, file)).size, 0) / 1e6,
    async invoke(invocation) {
      running ??= start();
      try {
        return await exchange(await running.port, invocation);
      } catch {
        return FAILED;
      }
    },
    instance: () => running?.instance,
    output: () => Buffer.concat(chunks).toString(),
    async stop() {
      if (running) await endProcess(running.instance.pid, [{ signal: 'SIGCONT', milliseconds: 1 }]);
      running = undefined;
    },
  };
}
