import { Redis } from 'ioredis';
import { CommandError, type KvEngine } from './server';

/**
 * Passes every command to the Redis at `url`; it connects at the first one, and again whenever the connection is
 * lost. A command waits at most 2 s for its answer, then rejects.
 */
export function redisEngine(url: string): KvEngine {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 2_000,
    commandTimeout: 2_000,
    maxRetriesPerRequest: 1,
    retryStrategy: (attempt) => Math.min(attempt * 100, 1_000),
  });
  redis.on('error', () => {}); // the commands that fail for it say so

  return {
    async call(command, ...args) {
      try {
        return await redis.call(command, ...args);
      } catch (error) {
        throw commandError(error);
      }
    },
    async transaction(commands) {
      const queued = redis.multi();
      for (const [name, ...args] of commands) queued.call(name, ...args);
      try {
        const replies = (await queued.exec()) ?? [];
        return replies.map(([error, result]) => (error ? { error: error.message } : { result }));
      } catch (error) {
        throw commandError(error);
      }
    },
    async close() {
      redis.disconnect();
    },
  };
}

/** What Redis answered is the command's fault; anything else is the connection's. */
function commandError(error: unknown): unknown {
  return error instanceof Error && error.name === 'ReplyError' ? new CommandError(error.message) : error;
}
