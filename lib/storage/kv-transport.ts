import http from 'node:http';
import https from 'node:https';
import type { VercelKV } from '@vercel/kv';
import * as z from 'zod/mini';

/** What the KV client takes in place of its own HTTP. */
type Requester = Extract<ConstructorParameters<typeof VercelKV>[0], { request: unknown }>;

/** Where the store is, and how long one exchange with it may take. */
export interface KvAddress {
  readonly url: string;
  readonly token: string;
  readonly timeoutMs: number;
}

const MAX_CONNECTIONS = 32;
const MAX_ANSWER_LENGTH = 1024 * 1024;

const RejectedRequest = z.object({ error: z.string() });

/** Returns an error with the store's own text as its cause if the store rejects a request as a whole, else undefined. */
function rejectionIn(body: string): Error | undefined {
  try {
    return new Error('KV store refuses', { cause: new Error(RejectedRequest.parse(JSON.parse(body)).error) });
  } catch {
    return undefined;
  }
}

/** POSTs a body over a kept connection and returns the body of a 200; ends within the time-out. */
function poster({ url, token, timeoutMs }: KvAddress): (body: string) => Promise<string> {
  const target = new URL(`${url.replace(/\/$/, '')}/pipeline`);
  const { Agent, request: open } = target.protocol === 'https:' ? https : http;
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS, scheduling: 'lifo' });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };

  return (body) =>
    new Promise((resolve, reject) => {
      let timedOut = false;
      const fail = (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      };
      const send = () => {
        let answered = false;
        const request = open(target, {
          method: 'POST',
          agent,
          headers: { ...headers, 'content-length': Buffer.byteLength(body) },
        });
        request.on('response', (response) => {
          answered = true;
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => {
            text += chunk;
            if (text.length > MAX_ANSWER_LENGTH) request.destroy(new Error('KV store answers too much'));
          });
          response.on('error', fail);
          response.on('end', () => {
            if (response.statusCode !== 200)
              return fail(
                Object.assign(rejectionIn(text) ?? new Error('KV store refuses'), {
                  code: `HTTP_${response.statusCode}`,
                }),
              );
            clearTimeout(timer);
            resolve(text);
          });
        });
        request.on('error', (error) => {
          const wasClosed = 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
          if (wasClosed && request.reusedSocket && !answered && !timedOut) current = send();
          else fail(error);
        });
        request.end(body);
        return request;
      };
      // First: over an address that it cannot use, it throws.
      let current = send();
      const timer = setTimeout(() => {
        timedOut = true;
        fail(new Error('KV store does not answer'));
        current.destroy();
        // The idle ones may have gone dark as well.
        for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();
      }, timeoutMs);
    });
}

/** The client parses a string as JSON: it gets what is stored as JSON, so that nothing of it changes. */
const AsStored = z.pipe(
  z.transform((result: unknown) => (typeof result === 'string' ? JSON.stringify(result) : result)),
  // What it is, is for the caller of the command to judge.
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
 * The KV client's way to its store: kept connections, and one round trip for all commands that are given in one turn of
 * the event loop. Node's `fetch`, which the client has by itself, takes several times the processor time.
 *
 * Rejects when the store is out of reach, refuses, answers more than 1 MiB, or has not answered after `timeoutMs`. A
 * command is sent once; only if the store had closed the idle connection that it was given, it is sent again.
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
      if (replies.length !== calls.length) throw new Error('KV store answers something else');
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
