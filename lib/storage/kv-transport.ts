import http from 'node:http';
import https from 'node:https';
import type { VercelKV } from '@vercel/kv';
import * as z from 'zod/mini';
import { TimeoutError, withTimeout } from '../concurrency/with-timeout';

/** The transport option of the KV client. It replaces the client's own HTTP code. */
type Requester = Extract<ConstructorParameters<typeof VercelKV>[0], { request: unknown }>;

/** Address and credentials of the store, and the time limit of one request. */
export interface KvAddress {
  readonly url: string;
  readonly token: string;
  readonly timeoutMs: number;
}

const MAX_CONNECTIONS = 32;
const MAX_RESPONSE_LENGTH = 1024 * 1024;

const RejectedRequest = z.object({ error: z.string() });

/** Returns an error with the store's own text as its cause if the store rejects a request as a whole, else undefined. */
function rejectionIn(body: string): Error | undefined {
  try {
    const { error } = RejectedRequest.parse(JSON.parse(body));
    return new Error('KV store rejected the request', { cause: new Error(error) });
  } catch {
    return undefined;
  }
}

/** The store closed an idle connection before it could receive the request. */
class StaleConnectionError extends Error {}

interface Exchange {
  readonly request: http.ClientRequest;
  /** The body of a 200. */
  readonly body: Promise<string>;
}

/** Resolves to the body of a 200. Rejects for another status and for a body of more than 1 MiB. */
function readResponse(request: http.ClientRequest): Promise<string> {
  return new Promise((resolve, reject) => {
    let hasResponse = false;
    request.on('error', (error) => {
      const wasClosed = 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
      const isStale = wasClosed && request.reusedSocket && !hasResponse;
      reject(isStale ? new StaleConnectionError() : error);
    });
    request.on('response', (response) => {
      hasResponse = true;
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
        if (text.length > MAX_RESPONSE_LENGTH) request.destroy(new Error('KV response is too long'));
      });
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200) return resolve(text);
        const error = rejectionIn(text) ?? new Error('KV store rejected the request');
        reject(Object.assign(error, { code: `HTTP_${response.statusCode}` }));
      });
    });
  });
}

/** Returns a function that sends a POST over a keep-alive connection and resolves to the body of a 200. */
function poster({ url, token, timeoutMs }: KvAddress): (body: string) => Promise<string> {
  const target = new URL(`${url.replace(/\/$/, '')}/pipeline`);
  const { Agent, request: open } = target.protocol === 'https:' ? https : http;
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS, scheduling: 'lifo' });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };

  function send(body: string): Exchange {
    const request = open(target, {
      method: 'POST',
      agent,
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
    });
    const exchange = { request, body: readResponse(request) };
    request.end(body);
    return exchange;
  }

  return async (body) => {
    let exchange = send(body);
    const skipStaleConnections = async (): Promise<string> => {
      for (;;) {
        try {
          return await exchange.body;
        } catch (error) {
          if (!(error instanceof StaleConnectionError)) throw error;
          exchange = send(body);
        }
      }
    };
    try {
      return await withTimeout(timeoutMs, skipStaleConnections());
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error;
      exchange.request.destroy(error);
      // The idle connections may be dead as well.
      for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();
      throw new Error('KV store did not respond');
    }
  };
}

/** The client parses each string as JSON. A string is therefore encoded again, so that the client returns it unchanged. */
const AsStored = z.pipe(
  z.transform((result: unknown) => (typeof result === 'string' ? JSON.stringify(result) : result)),
  // The caller of the command validates the value.
  z.custom<never>(),
);
const Reply = z.pipe(
  z.object({ result: AsStored, error: z.optional(z.string()) }),
  z.transform(({ result, error }) => (error === undefined ? { result } : { error })),
);
const Replies = z.array(Reply);

interface Call {
  readonly command: unknown;
  readonly resolve: (reply: z.infer<typeof Reply>) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Returns a transport for the KV client with keep-alive connections and one request for all commands of an event loop
 * iteration. Node.js `fetch`, the client's default, takes several times the CPU time.
 *
 * A command rejects if the store is unreachable, rejects the request, sends more than 1 MiB or does not respond within
 * `timeoutMs`. It is sent once. Only if the store has closed the reused connection, it is sent again.
 */
export function kvRequester(address: KvAddress): Requester {
  const post = poster(address);
  let waiting: Call[] = [];
  const flush = async () => {
    const calls = waiting;
    waiting = [];
    try {
      const text = await post(JSON.stringify(calls.map(({ command }) => command)));
      const { data: replies, error } = Replies.safeParse(JSON.parse(text));
      if (error) throw rejectionIn(text) ?? error;
      if (replies.length !== calls.length) throw new Error('KV store sent a different number of results');
      for (const [index, reply] of replies.entries()) calls[index]?.resolve(reply);
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
  };
  return {
    request: ({ body }) =>
      new Promise((resolve, reject) => {
        if (waiting.push({ command: body, resolve, reject }) === 1) setImmediate(() => void flush());
      }),
  };
}
