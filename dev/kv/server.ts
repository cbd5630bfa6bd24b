import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { z } from 'zod';
import { listen } from '../system/listen';

/** What answers the commands: a store in memory, or a Redis. */
export interface KvEngine {
  /** Runs one command; rejects with a CommandError when the command is at fault, with anything else when it is not. */
  call(command: string, ...args: string[]): Promise<unknown>;
  /** Runs all commands with no other between them, or none; a reply each. Rejects as `call` does. */
  transaction(commands: readonly (readonly [string, ...string[]])[]): Promise<KvReply[]>;
  close(): Promise<void>;
}

/** The answer to one of several commands. */
export type KvReply = { readonly result: unknown } | { readonly error: string };

/** The command is wrong; the message is Redis' own, such as `ERR syntax error`. */
export class CommandError extends Error {}

/** A running KV server. */
export interface KvServer {
  readonly url: string;
  readonly token: string;
  /** When it resolves nothing listens any more, and the engine is closed. */
  stop(): Promise<void>;
}

/** What startKvServer needs to know. */
export interface KvServerOptions {
  readonly token: string;
  /** Absent: any free port. */
  readonly port?: number;
  readonly engine: KvEngine;
  /** Sees every command before it runs, also those of pipelines and transactions. */
  readonly onCommand?: (command: string, args: readonly string[]) => void;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const maximumBody = 1024 * 1024;
const Argument = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const Command = z.tuple([Argument], Argument);
const Commands = z.array(Command).min(1);

/**
 * Serves the REST protocol of Upstash (and so of Vercel KV) on 127.0.0.1, as far as their client speaks it for
 * plain commands: one command, `/pipeline`, `/multi-exec`, and a command spelled in the path. Every request needs
 * the token.
 *
 * Source: https://upstash.com/docs/redis/features/restapi, and @upstash/redis 1.39.
 */
export async function startKvServer(options: KvServerOptions): Promise<KvServer> {
  const { token, engine } = options;
  const server = createServer(async (request, response) => {
    const { status, body } = await answer(request, options).catch(failure);
    response.writeHead(status, {
      'content-type': 'application/json',
      ...(status === 413 ? { connection: 'close' } : {}),
    });
    response.end(JSON.stringify(body));
  });
  server.requestTimeout = 30_000;

  const stop = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    const impatience = setTimeout(() => server.closeAllConnections(), 2_000);
    await closed;
    clearTimeout(impatience);
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

async function answer(request: IncomingMessage, options: KvServerOptions): Promise<Answer> {
  if (!isAuthorized(request.headers.authorization, options.token)) {
    return refusal(401, 'WRONGPASS invalid or missing auth token');
  }
  if (request.method !== 'POST' && request.method !== 'GET') return refusal(405, 'ERR use GET or POST');
  const url = new URL(`http://localhost${request.url ?? '/'}`);
  const segments = url.pathname.split('/').filter((segment) => segment !== '');
  const body = await readBody(request);
  if (body === undefined) return refusal(413, 'ERR max request size exceeded');

  const encode = request.headers['upstash-encoding'] === 'base64' ? toBase64 : (value: unknown) => value;
  const [first, second] = segments;
  if (first === undefined) {
    if (request.method === 'GET') return refusal(404, 'ERR no command in the path');
    return one(Command.parse(JSON.parse(body)), options, encode);
  }
  if ((first === 'pipeline' || first === 'multi-exec') && second === undefined) {
    if (request.method === 'GET') return refusal(404, `ERR /${first} takes POST`);
    const runAll = first === 'pipeline' ? pipeline : transaction;
    const replies = await runAll(Commands.parse(JSON.parse(body)), options);
    return { status: 200, body: replies.map((reply) => encodeReply(reply, encode)) };
  }
  const query = [...url.searchParams].flat().filter((word) => word !== '');
  const words = [...segments.map(decodeURIComponent), ...(body === '' ? [] : [body]), ...query];
  return one(Command.parse(words), options, encode);
}

type ParsedCommand = z.infer<typeof Command>;

async function one(command: ParsedCommand, options: KvServerOptions, encode: Encode): Promise<Answer> {
  const reply = await run(command, options);
  return 'error' in reply ? refusal(400, reply.error) : { status: 200, body: encodeReply(reply, encode) };
}

function pipeline(commands: readonly ParsedCommand[], options: KvServerOptions): Promise<KvReply[]> {
  return Promise.all(commands.map((command) => run(command, options)));
}

function transaction(
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
  // The status OK goes out as it is, everywhere else a string may hold bytes that JSON cannot carry.
  return { result: reply.result === 'OK' ? 'OK' : (encode(reply.result) ?? null) };
}

function toBase64(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toBase64);
  return typeof value === 'string' ? Buffer.from(value).toString('base64') : value;
}

function failure(error: unknown): Answer {
  if (error instanceof CommandError) return refusal(400, error.message);
  if (error instanceof SyntaxError || error instanceof z.ZodError)
    return refusal(400, 'ERR failed to parse command');
  if (error instanceof URIError) return refusal(400, 'ERR malformed path');
  return refusal(503, 'ERR the store does not answer');
}

function refusal(status: number, error: string): Answer {
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
    if (size > maximumBody) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
