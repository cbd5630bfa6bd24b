import { LRUCache } from 'lru-cache';

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
