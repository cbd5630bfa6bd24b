import { Redis } from 'ioredis';
import { CommandError, type KvEngine } from './server';

/**
 * Returns a KvEngine that forwards every command to the Redis server at `url`. It connects on the first command and reconnects
 * when the connection is lost. A command rejects if Redis does not respond within 2 s.
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
    call: (command, ...args) =>
      redis.call(command, ...args).catch((error: Error) => {
        // Any other error, such as a timeout, means that the store fails.
        throw error.name === 'ReplyError' ? new CommandError(error.message) : error;
      }),
    async close() {
      redis.disconnect();
    },
  };
}
