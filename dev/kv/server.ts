import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { z } from 'zod';
import { listen } from '../system/listen';

/** Store that runs Redis commands, either in memory or in a Redis server. */
export interface KvEngine {
  /** Runs one command. Rejects with a CommandError if the command is invalid, and with another error if the store fails. */
  call(command: string, ...args: string[]): Promise<unknown>;
  /**
   * Runs the commands as one transaction and returns one reply for each command. The reply to a command that fails while it
   * runs contains the error. Rejects with a CommandError if Redis would discard the transaction (EXECABORT), for example
   * because of an unknown command. Rejects with another error if the store fails.
   */
  transaction(commands: readonly (readonly [string, ...string[]])[]): Promise<KvReply[]>;
  close(): Promise<void>;
}

/** Reply to one command of a pipeline or transaction. */
export type KvReply = { readonly result: unknown } | { readonly error: string };

/** Error for an invalid command. The message is the error message of Redis, such as `ERR syntax error`. */
export class CommandError extends Error {}

/** A running key-value (KV) server. */
export interface KvServer {
  readonly url: string;
  readonly token: string;
  /** Resolves when the server has stopped listening and the engine is closed. */
  stop(): Promise<void>;
}

export interface KvServerOptions {
  readonly token: string;
  /** Default: any free port. */
  readonly port?: number;
  readonly engine: KvEngine;
  /** Called before each command runs, including the commands of pipelines and transactions. */
  readonly onCommand?: (command: string, args: readonly string[]) => void;
}

interface HttpResult {
  readonly status: number;
  readonly body: unknown;
}

const maximumBodyBytes = 1024 * 1024;
const Argument = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const Command = z.tuple([Argument], Argument);
const Commands = z.array(Command).min(1);

/**
 * Serves the Upstash Redis REST API, which Vercel KV also uses, on 127.0.0.1. Supports single commands, `/pipeline`,
 * `/multi-exec` and commands in the URL path. Every request needs the token.
 *
 * Sources: https://upstash.com/docs/redis/features/restapi and the client @upstash/redis 1.39.
 */
export async function startKvServer(options: KvServerOptions): Promise<KvServer> {
  const { token, engine } = options;
  const server = createServer(async (request, response) => {
    const { status, body } = await handle(request, options).catch(errorResult);
    response.writeHead(status, {
      'content-type': 'application/json',
      // The rest of a body that is too large is not read, so the connection cannot be used again.
      ...(status === 413 ? { connection: 'close' } : {}),
    });
    response.end(JSON.stringify(body));
  });
  server.requestTimeout = 30_000;

  const stop = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    const forceClose = setTimeout(() => server.closeAllConnections(), 2_000);
    await closed;
    clearTimeout(forceClose);
    await engine.close();
  };
  let stopped: Promise<void> | undefined;
  const port = await listen(server, options.port);
  return {
    url: `http://127.0.0.1:${port}`,
    token,
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}

async function handle(request: IncomingMessage, options: KvServerOptions): Promise<HttpResult> {
  if (!isAuthorized(request.headers.authorization, options.token)) {
    return rejection(401, 'WRONGPASS invalid or missing auth token');
  }
  if (request.method !== 'POST' && request.method !== 'GET') return rejection(405, 'ERR use GET or POST');
  const url = new URL(`http://localhost${request.url ?? '/'}`);
  const segments = url.pathname.split('/').filter((segment) => segment !== '');
  const body = await readBody(request);
  if (body === undefined) return rejection(413, 'ERR max request size exceeded');

  const encode = request.headers['upstash-encoding'] === 'base64' ? toBase64 : (value: unknown) => value;
  const [first, second] = segments;
  if (first === undefined) {
    if (request.method === 'GET') return rejection(404, 'ERR no command in the path');
    return runOne(Command.parse(JSON.parse(body)), options, encode);
  }
  if ((first === 'pipeline' || first === 'multi-exec') && second === undefined) {
    if (request.method === 'GET') return rejection(404, `ERR /${first} takes POST`);
    const runAll = first === 'pipeline' ? runPipeline : runTransaction;
    const replies = await runAll(Commands.parse(JSON.parse(body)), options);
    return { status: 200, body: replies.map((reply) => encodeReply(reply, encode)) };
  }
  // A command in the path gets the body and then the query parameters as further arguments.
  const query = [...url.searchParams].flat().filter((word) => word !== '');
  const words = [...segments.map(decodeURIComponent), ...(body === '' ? [] : [body]), ...query];
  return runOne(Command.parse(words), options, encode);
}

type ParsedCommand = z.infer<typeof Command>;

async function runOne(command: ParsedCommand, options: KvServerOptions, encode: Encode): Promise<HttpResult> {
  const reply = await run(command, options);
  return 'error' in reply ? rejection(400, reply.error) : { status: 200, body: encodeReply(reply, encode) };
}

function runPipeline(commands: readonly ParsedCommand[], options: KvServerOptions): Promise<KvReply[]> {
  return Promise.all(commands.map((command) => run(command, options)));
}

function runTransaction(
  commands: readonly ParsedCommand[],
  { engine, onCommand }: KvServerOptions,
): Promise<KvReply[]> {
  for (const [name, ...args] of commands) onCommand?.(name, args);
  return engine.transaction(commands);
}

async function run([name, ...args]: ParsedCommand, { engine, onCommand }: KvServerOptions): Promise<KvReply> {
  onCommand?.(name, args);
  try {
    return { result: await engine.call(name, ...args) };
  } catch (error) {
    if (error instanceof CommandError) return { error: error.message };
    throw error;
  }
}

type Encode = (value: unknown) => unknown;

function encodeReply(reply: KvReply, encode: Encode): KvReply {
  if ('error' in reply) return reply;
  // If a client requests base64, Upstash encodes each string in the result, but not a result that is just OK. Clients request
  // base64 because JSON cannot represent all byte sequences.
  return { result: reply.result === 'OK' ? 'OK' : (encode(reply.result) ?? null) };
}

function toBase64(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toBase64);
  return typeof value === 'string' ? Buffer.from(value).toString('base64') : value;
}

function errorResult(error: unknown): HttpResult {
  if (error instanceof CommandError) return rejection(400, error.message);
  if (error instanceof SyntaxError || error instanceof z.ZodError)
    return rejection(400, 'ERR failed to parse command');
  if (error instanceof URIError) return rejection(400, 'ERR malformed path');
  return rejection(503, 'ERR the store does not respond');
}

function rejection(status: number, error: string): HttpResult {
  return { status, body: { error } };
}

function isAuthorized(header: string | undefined, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(header ?? ''), digest(`Bearer ${token}`));
}

async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue;
    size += chunk.length;
    if (size > maximumBodyBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
