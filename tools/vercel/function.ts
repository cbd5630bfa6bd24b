import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { endProcess, killOnExit } from '../../dev/system/processes';

const LAUNCHER = fileURLToPath(new URL('./launcher.mjs', import.meta.url));

/** Fields of `.vc-config.json` that this module uses. */
const FunctionConfig = z.object({
  handler: z.string(),
  runtime: z.string(),
  launcherType: z.literal('Nodejs'),
  maxDuration: z.optional(z.number()),
  useWebApi: z._default(z.boolean(), false),
  environment: z.record(z.string(), z.string()),
});

export type Headers = Record<string, string | string[]>;

/** Request that the platform (Vercel) passes to a function. */
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

/** Running process of a function. */
interface Instance {
  readonly pid: number;
  /** Returns the number of pending promises that the function has passed to `waitUntil`. */
  waiting(): number;
}

/** A serverless function of the build, in its own folder. */
export interface BuiltFunction {
  readonly name: string;
  readonly config: z.infer<typeof FunctionConfig>;
  /** Paths relative to the folder of the function. */
  readonly files: readonly string[];
  readonly megabytes: number;
  /** Sends a request and starts the process if necessary. Returns a 500 if the process does not respond. */
  invoke(invocation: Invocation): Promise<Reply>;
  /** Returns the running process, if any. */
  instance(): Instance | undefined;
  /** Returns the output of all processes of the function. */
  output(): string;
  /** Terminates the process. The next request starts a new one. */
  stop(): Promise<void>;
}

export interface FunctionOptions {
  readonly name: string;
  /**
   * Folder of the function. It must not be inside the project. Otherwise, if the build lacks a module, Node.js could load the
   * module from the project's node_modules.
   */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /**
   * If true, launcher.mjs hides its HTTP server from the code of the function, as if the server ran in another process. Vercel
   * does not document in which process its HTTP server runs, so both cases are tested.
   */
  readonly hideServer: boolean;
}

const Message = z.union([z.object({ port: z.number() }), z.object({ waiting: z.number() })]);
const START_MILLISECONDS = 60_000;
/** Longer than the timeout of the platform (15 s in `vercel.json`), because the machine may be busy. */
const RESPONSE_MILLISECONDS = 60_000;

interface Running {
  readonly child: ChildProcess;
  readonly instance: Instance;
  readonly port: Promise<number>;
}

function sendRequest(port: number, { method, url, headers, body }: Invocation): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { host: '127.0.0.1', port, method, path: url, headers, agent: false, timeout: RESPONSE_MILLISECONDS },
      async (response) => {
        const chunks: Buffer[] = [];
        try {
          for await (const chunk of response) chunks.push(chunk);
          const received: Headers = {};
          for (const [name, value] of Object.entries(response.headers)) if (value) received[name] = value;
          resolve({ status: response.statusCode ?? 0, headers: received, body: Buffer.concat(chunks) });
        } catch (error) {
          reject(error);
        }
      },
    );
    request.on('timeout', () => request.destroy(new Error(`${method} ${url} got no response`)));
    request.on('error', reject);
    request.end(body);
  });
}

const FAILED: Reply = {
  status: 500,
  headers: { 'x-vercel-error': 'FUNCTION_INVOCATION_FAILED' },
  body: Buffer.from('FUNCTION_INVOCATION_FAILED'),
};

/** Reads a built function from its folder. */
export function loadFunction({ name, folder, environment, hideServer }: FunctionOptions): BuiltFunction {
  const config = FunctionConfig.parse(JSON.parse(readFileSync(path.join(folder, '.vc-config.json'), 'utf8')));
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    statSync(path.join(folder, file)).isFile(),
  );
  const chunks: Buffer[] = [];
  let running: Running | undefined;

  function start(): Running {
    const args = [
      LAUNCHER,
      config.handler,
      config.useWebApi ? 'web' : 'node',
      hideServer ? 'hidden' : 'visible',
    ];
    const child = spawn(process.execPath, args, {
      cwd: folder,
      env: { PATH: process.env['PATH'], NODE_ENV: 'production', ...config.environment, ...environment },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const { pid } = child;
    if (pid === undefined) throw new Error(`Cannot start ${name}.`);
    const release = killOnExit(pid, 'SIGTERM');
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => chunks.push(chunk));
    let waiting = 0;
    const port = new Promise<number>((resolve, reject) => {
      child.on('message', (message) => {
        const update = Message.parse(message);
        if ('port' in update) resolve(update.port);
        else waiting = update.waiting;
      });
      child.once('exit', () => {
        release();
        if (running?.child === child) running = undefined;
        reject(new Error(`${name} ended during startup.`));
      });
      setTimeout(() => reject(new Error(`${name} did not start.`)), START_MILLISECONDS).unref();
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
        return await sendRequest(await running.port, invocation);
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
