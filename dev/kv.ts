import { createServer, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { close, listen } from './system/listen';

/** Store that runs Redis commands. */
export interface KvEngine {
  /** Runs one command. Rejects with a CommandError if the command is invalid, and with another error if the store fails. */
  call(command: string, ...args: string[]): Promise<unknown>;
}

/** Error for an invalid command. The message is the error message of Redis, such as `ERR syntax error`. */
export class CommandError extends Error {}

/** Maximum number of keys. When it is exceeded, the store evicts the key that was used longest ago. */
const MAX_KEYS = 100_000;

/** Returns a store in memory that implements the commands of the service. */
export function memoryEngine(): KvEngine {
  // Reads the clock at each call, because tests replace it.
  const perf = { now: () => Date.now() };
  const entries = new LRUCache<string, string>({ max: MAX_KEYS, perf, ttlResolution: 0 });

  const commands: Record<string, (...args: string[]) => unknown> = {
    PING: () => 'PONG',
    GET: (key = '') => entries.get(key) ?? null,
    SET(key = '', value = '', ...options) {
      const [, isNew, seconds] = /^(NX ?)?(?:EX ([1-9]\d*))?$/i.exec(options.join(' ')) ?? [];
      if (options.length > 0 && !isNew && !seconds) throw new CommandError('ERR syntax error');
      if (isNew && entries.has(key)) return null;
      // An entry of the cache expires one millisecond after its time to live.
      entries.set(key, value, seconds ? { ttl: Number(seconds) * 1000 - 1 } : {});
      return 'OK';
    },
    DEL: (...keys) => keys.filter((key) => entries.delete(key)).length,
  };

  return {
    async call(name, ...args) {
      const command = Object.hasOwn(commands, name.toUpperCase()) ? commands[name.toUpperCase()] : undefined;
      if (!command) throw new CommandError(`ERR unknown command '${name.slice(0, 128)}'`);
      return command(...args);
    },
  };
}

export interface KvServerOptions {
  readonly token: string;
  /** Default: a new store in memory. */
  readonly engine?: KvEngine;
}

const Argument = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const Command = z.tuple([Argument], Argument);
/** One command, or the commands of a pipeline. */
const Commands = z.union([z.array(Command).min(1), Command.transform((command) => [command])]);

type Reply = { readonly result: unknown } | { readonly error: string };

export type KvServer = Awaited<ReturnType<typeof startKvServer>>;

/**
 * Serves the two requests of the Upstash Redis REST API that the KV client sends, on 127.0.0.1: one command (`/`) and several
 * commands (`/pipeline`). Every request needs the token.
 *
 * Sources: https://upstash.com/docs/redis/features/restapi and the client @upstash/redis 1.39.
 */
export async function startKvServer({ token, engine = memoryEngine() }: KvServerOptions) {
  const server = createServer(async (request, response) => {
    const { status, body } = await handle(request, token, engine).catch(() => ({
      status: 503,
      body: { error: 'ERR the store does not respond' },
    }));
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const url = `http://127.0.0.1:${await listen(server)}`;
  return { url, token, stop: () => close(server) };
}

async function handle(request: IncomingMessage, token: string, engine: KvEngine) {
  if (request.headers.authorization !== `Bearer ${token}`)
    return { status: 401, body: { error: 'WRONGPASS invalid or missing auth token' } };
  const commands = Commands.safeParse(await json(request).catch(() => undefined));
  if (!commands.success) return { status: 400, body: { error: 'ERR failed to parse command' } };
  const run = async ([name, ...args]: z.infer<typeof Command>): Promise<Reply> => {
    try {
      const result = await engine.call(name, ...args);
      // A client that requests base64 gets each string encoded, except OK.
      const isEncoded = request.headers['upstash-encoding'] === 'base64' && typeof result === 'string';
      return { result: isEncoded && result !== 'OK' ? Buffer.from(result).toString('base64') : result };
    } catch (error) {
      if (error instanceof CommandError) return { error: error.message };
      throw error;
    }
  };
  const replies = await Promise.all(commands.data.map(run));
  if (request.url === '/pipeline') return { status: 200, body: replies };
  const [reply = { error: 'ERR no command' }] = replies;
  return { status: 'error' in reply ? 400 : 200, body: reply };
}
