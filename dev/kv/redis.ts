import { Redis } from 'ioredis';
import { CommandError, type KvEngine } from './server';

/**
 * Returns a KvEngine that forwards every command to the Redis server at `url`. The engine connects on the first command and
 * reconnects when the connection is lost. A command rejects if Redis does not respond within 2 s.
 */
export function redisEngine(url: string): KvEngine {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 2_000,
    commandTimeout: 2_000,
    maxRetriesPerRequest: 1,
    retryStrategy: (attempt) => Math.min(attempt * 100, 1_000),
  });
  redis.on('error', () => {}); // ignored, because the pending commands reject with the error

  return {
    async call(command, ...args) {
      try {
        return await redis.call(command, ...args);
      } catch (error) {
        throw toCommandError(error);
      }
    },
    async transaction(commands) {
      const queued = redis.multi();
      for (const [name, ...args] of commands) queued.call(name, ...args);
      try {
        const replies = (await queued.exec()) ?? [];
        return replies.map(([error, result]) => (error ? { error: error.message } : { result }));
      } catch (error) {
        throw toCommandError(error);
      }
    },
    async close() {
      redis.disconnect();
    },
  };
}

/**
 * Converts an error that Redis returned into a CommandError. Returns every other error unchanged. Such an error, for example a
 * timeout, means that the store fails, and the server responds with a 503.
 */
function toCommandError(error: unknown): unknown {
  return error instanceof Error && error.name === 'ReplyError' ? new CommandError(error.message) : error;
}
