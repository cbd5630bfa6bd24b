import http from 'node:http';
import https from 'node:https';
import { VercelKV } from '@vercel/kv';
import * as z from 'zod/mini';
import { parseEnvironmentSubset, variables } from '../env';
import { describeError } from '../errors/describe-error';
import { log } from '../log';
import { telemetry } from '../telemetry/with-span';
import { kvBreaker } from './kv-breaker';

/** Time limit of one call to the store. A request with a session makes at most two calls. */
const TIMEOUT_MS = 500;
const MAX_CONNECTIONS = 32;
const MAX_RESPONSE_LENGTH = 1024 * 1024;

/** The transport that can be passed to the KV client. It replaces the HTTP code of the client. */
type Requester = Extract<ConstructorParameters<typeof VercelKV>[0], { request: unknown }>;

/** Address and credentials of the store, and the time limit of one request. */
interface KvAddress {
  readonly url: string;
  readonly token: string;
  readonly timeoutMs: number;
}

const RejectedRequest = z.object({ error: z.string() });

/**
 * Returns an error if a response body rejects the whole request, otherwise undefined. The `cause` of the error contains the
 * message of the store.
 */
function rejectionIn(body: string): Error | undefined {
  try {
    const { error } = RejectedRequest.parse(JSON.parse(body));
    return new Error('KV store rejected the request', { cause: new Error(error) });
  } catch {
    return undefined;
  }
}

/**
 * Returns a function that sends a POST over a keep-alive connection and resolves to the body of the response. The function
 * rejects if the connection fails, if the status is not 200, if the body has more than `MAX_RESPONSE_LENGTH` characters, or if
 * there is no complete response after `timeoutMs`.
 */
function poster({ url, token, timeoutMs }: KvAddress): (body: string) => Promise<string> {
  const target = new URL(`${url.replace(/\/$/, '')}/pipeline`);
  const { Agent, request: open } = target.protocol === 'https:' ? https : http;
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };

  return (body) => {
    let timer: NodeJS.Timeout | undefined;
    const sent = new Promise<string>((resolve, reject) => {
      function send(): http.ClientRequest {
        let hasResponse = false;
        const options = {
          method: 'POST',
          agent,
          headers: { ...headers, 'content-length': Buffer.byteLength(body) },
        };
        const request = open(target, options, (response) => {
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
        request.on('error', (error) => {
          // The store may have closed the idle connection before the request arrived.
          const wasClosed = 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
          if (wasClosed && request.reusedSocket && !hasResponse) inFlight = send();
          else reject(error);
        });
        return request.end(body);
      }
      let inFlight = send();
      timer = setTimeout(() => {
        const error = new Error('KV store did not respond');
        reject(error);
        inFlight.destroy(error);
        // The idle connections may be dead too, so the next request must not reuse them.
        for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();
      }, timeoutMs);
    });
    return sent.finally(() => clearTimeout(timer));
  };
}

/** Encodes a result as JSON if it is a string. The KV client parses each string as JSON, and so returns the original string. */
const AsStored = z.pipe(
  z.transform((result: unknown) => (typeof result === 'string' ? JSON.stringify(result) : result)),
  // The value has no known type. The caller of the command validates it.
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
 * Returns a transport for the KV client. The transport uses keep-alive connections and sends all commands of an event loop
 * iteration in one request. Node.js `fetch`, the client's default, takes several times the CPU time.
 *
 * The promise of a command rejects if the store is unreachable or does not respond within `timeoutMs`, or if the response is an
 * error or is too long. A command is sent again only if the store closed a reused connection without a response.
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

function connect() {
  const { KV_REST_API_URL: url, KV_REST_API_TOKEN: token } = parseEnvironmentSubset(
    z.pick(variables, { KV_REST_API_URL: true, KV_REST_API_TOKEN: true }),
  );
  return kvBreaker(new VercelKV(kvRequester({ url, token, timeoutMs: TIMEOUT_MS })), {
    onOpen: (error) => {
      telemetry()?.breakerOpened();
      log.warn({ error: describeError(error) }, 'cache skipped');
    },
    onClose: () => {
      telemetry()?.breakerClosed();
      log.info('cache in use again');
    },
  });
}

let connection: ReturnType<typeof connect> | undefined;

/**
 * Runs a command with the KV client of this process. Rejects if the store fails or does not respond within 500 ms. Rejects
 * immediately while the circuit breaker is open (kvBreaker).
 */
export async function withKv<T>(command: (kv: VercelKV) => Promise<T>): Promise<T> {
  connection ??= connect();
  return connection(command);
}
