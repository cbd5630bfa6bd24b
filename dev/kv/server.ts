import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { close, listen } from '../system/listen';

/** Store that runs Redis commands, either in memory or in a Redis server. */
export interface KvEngine {
  /** Runs one command. Rejects with a CommandError if the command is invalid, and with another error if the store fails. */
  call(command: string, ...args: string[]): Promise<unknown>;
  close(): Promise<void>;
}

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
  /** Called before each command runs. */
  readonly onCommand?: (command: string, args: readonly string[]) => void;
}

const Argument = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const Command = z.tuple([Argument], Argument);
/** One command, or the commands of a pipeline. */
const Commands = z.union([z.array(Command).min(1), Command.transform((command) => [command])]);

type Reply = { readonly result: unknown } | { readonly error: string };

/**
 * Serves the two requests of the Upstash Redis REST API that the KV client sends, on 127.0.0.1: one command (`/`) and several
 * commands (`/pipeline`). Every request needs the token.
 *
 * Sources: https://upstash.com/docs/redis/features/restapi and the client @upstash/redis 1.39.
 */
export async function startKvServer(options: KvServerOptions): Promise<KvServer> {
  const { token, engine } = options;
  const server = createServer(async (request, response) => {
    const { status, body } = await handle(request, options).catch(() => ({
      status: 503,
      body: { error: 'ERR the store does not respond' },
    }));
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const port = await listen(server, options.port);
  return {
    url: `http://127.0.0.1:${port}`,
    token,
    async stop() {
      await close(server);
      await engine.close();
    },
  };
}

async function handle(request: IncomingMessage, { token, engine, onCommand }: KvServerOptions) {
  if (request.headers.authorization !== `Bearer ${token}`)
    return { status: 401, body: { error: 'WRONGPASS invalid or missing auth token' } };
  const commands = Commands.safeParse(parseJson(await text(request)));
  if (!commands.success) return { status: 400, body: { error: 'ERR failed to parse command' } };
  const run = async ([name, ...args]: z.infer<typeof Command>): Promise<Reply> => {
    onCommand?.(name, args);
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

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
