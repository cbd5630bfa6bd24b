import { createClient, type VercelKV } from '@vercel/kv';
import { kvBreaker } from './circuit-breaker';

/** Time limit of one command. A request to the application runs at most two commands: a read and a write. */
const TIMEOUT_MS = 500;

const connect = () =>
  kvBreaker(
    createClient({
      url: process.env['KV_REST_API_URL'],
      token: process.env['KV_REST_API_TOKEN'],
      automaticDeserialization: false,
      retry: { retries: 0 },
      signal: () => AbortSignal.timeout(TIMEOUT_MS),
    }),
    {
      // Omits the message of the error, because it contains the command and thus the id of the user.
      onOpen: (error) => console.warn('identity-link: cache skipped:', error instanceof Error && error.name),
      onClose: () => console.info('identity-link: cache in use again'),
    },
  );

let connection: ReturnType<typeof connect> | undefined;

/** Runs a command. Rejects if the store fails or does not respond within 500 ms, and while the circuit breaker is open. */
export async function withKv<T>(command: (kv: VercelKV) => Promise<T>): Promise<T> {
  connection ??= connect();
  return connection(command);
}
