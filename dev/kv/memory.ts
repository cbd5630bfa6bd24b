import { CommandError, type KvEngine, type KvReply } from './server';

interface Entry {
  readonly value: string;
  /** Milliseconds since 1970, or infinity if the key never expires. */
  readonly expiresAt: number;
}

interface CommandDefinition {
  /** Minimum and maximum number of arguments. */
  readonly minimum: number;
  readonly maximum: number;
  readonly run: (args: readonly string[]) => unknown;
}

/** Maximum number of keys. When it is exceeded, the store evicts the key that was written longest ago. */
const maximumKeys = 100_000;

/**
 * Returns an in-memory store that implements GET, SET with all options of Redis 7, DEL, EXISTS, MGET, TTL, PTTL, EXPIRE
 * without options, INCR, PING, ECHO, DBSIZE and FLUSHALL. Any other command fails with Redis's "unknown command" error.
 * No other command runs during a transaction. If a command of a transaction fails while it runs, the other commands still take
 * effect, as in Redis.
 */
export function memoryEngine(): KvEngine {
  const entries = new Map<string, Entry>();

  const find = (key: string | undefined): Entry | undefined => {
    const entry = entries.get(key ?? '');
    if (!entry || entry.expiresAt > Date.now()) return entry;
    entries.delete(key ?? '');
    return undefined;
  };
  const put = (key: string, entry: Entry) => {
    entries.delete(key);
    entries.set(key, entry);
    const [oldest] = entries.keys();
    if (entries.size > maximumKeys && oldest !== undefined) entries.delete(oldest);
  };
  /**
   * Returns the remaining lifetime of a key. `round` converts it from milliseconds to the unit of the command. Returns -2 if
   * the key does not exist, and -1 if the key never expires, as Redis does.
   */
  const remaining = (key: string | undefined, round: (milliseconds: number) => number) => {
    const entry = find(key);
    if (!entry) return -2;
    return entry.expiresAt === Number.POSITIVE_INFINITY ? -1 : round(entry.expiresAt - Date.now());
  };
  const count = (keys: readonly string[], matches: (key: string) => boolean) => keys.filter(matches).length;

  const commands: Record<string, CommandDefinition> = {
    PING: { minimum: 0, maximum: 1, run: ([message = 'PONG']) => message },
    ECHO: { minimum: 1, maximum: 1, run: ([message]) => message },
    GET: { minimum: 1, maximum: 1, run: ([key]) => find(key)?.value ?? null },
    MGET: { minimum: 1, maximum: Infinity, run: (keys) => keys.map((key) => find(key)?.value ?? null) },
    EXISTS: { minimum: 1, maximum: Infinity, run: (keys) => count(keys, (key) => find(key) !== undefined) },
    DEL: {
      minimum: 1,
      maximum: Infinity,
      run: (keys) => count(keys, (key) => find(key) !== undefined && entries.delete(key)),
    },
    TTL: { minimum: 1, maximum: 1, run: ([key]) => remaining(key, (left) => Math.round(left / 1000)) },
    PTTL: { minimum: 1, maximum: 1, run: ([key]) => remaining(key, (left) => left) },
    EXPIRE: {
      minimum: 2,
      maximum: 2,
      run([key = '', seconds]) {
        const milliseconds = parseInteger(seconds) * 1000;
        const entry = find(key);
        if (!entry) return 0;
        entries.set(key, { ...entry, expiresAt: Date.now() + milliseconds });
        return 1;
      },
    },
    INCR: {
      minimum: 1,
      maximum: 1,
      run([key = '']) {
        const entry = find(key);
        const next = parseInteger(entry?.value ?? '0') + 1;
        if (!Number.isSafeInteger(next)) throw new CommandError('ERR increment or decrement would overflow');
        put(key, { value: String(next), expiresAt: entry?.expiresAt ?? Number.POSITIVE_INFINITY });
        return next;
      },
    },
    SET: {
      minimum: 2,
      maximum: Infinity,
      run([key = '', value = '', ...words]) {
        const old = find(key);
        const options = parseSetOptions(words, old);
        const isSkipped = (options.onlyIfAbsent && old) || (options.onlyIfPresent && !old);
        if (!isSkipped) put(key, { value, expiresAt: options.expiresAt });
        if (options.returnOld) return old?.value ?? null;
        return isSkipped ? null : 'OK';
      },
    },
    DBSIZE: {
      minimum: 0,
      maximum: 0,
      run: () => count([...entries.keys()], (key) => find(key) !== undefined),
    },
    FLUSHALL: {
      minimum: 0,
      maximum: 1,
      run() {
        entries.clear();
        return 'OK';
      },
    },
  };

  const prepare = (name: string, args: readonly string[]): (() => unknown) => {
    const command = Object.hasOwn(commands, name.toUpperCase()) ? commands[name.toUpperCase()] : undefined;
    if (!command) throw new CommandError(`ERR unknown command '${name.slice(0, 128)}'`);
    if (args.length < command.minimum || args.length > command.maximum) {
      throw new CommandError(`ERR wrong number of arguments for '${name.toLowerCase()}' command`);
    }
    return () => command.run(args);
  };

  return {
    async call(name, ...args) {
      return prepare(name, args)();
    },
    async transaction(list) {
      return prepareAll(list, prepare).map(runCommand);
    },
    async close() {
      entries.clear();
    },
  };
}

/** Prepares all commands of a transaction. Throws if one of them is unknown or has the wrong number of arguments. */
function prepareAll(
  list: readonly (readonly [string, ...string[]])[],
  prepare: (name: string, args: readonly string[]) => () => unknown,
): (() => unknown)[] {
  try {
    return list.map(([name, ...args]) => prepare(name, args));
  } catch {
    throw new CommandError('EXECABORT Transaction discarded because of previous errors.');
  }
}

function runCommand(run: () => unknown): KvReply {
  try {
    return { result: run() };
  } catch (error) {
    if (error instanceof CommandError) return { error: error.message };
    throw error;
  }
}

function parseSetOptions(words: readonly string[], old: Entry | undefined) {
  const options = {
    expiresAt: Number.POSITIVE_INFINITY,
    onlyIfAbsent: false,
    onlyIfPresent: false,
    returnOld: false,
  };
  const rest = [...words];
  let expirySet = false;
  const parseExpiry = (toTimestamp: (amount: number) => number) => {
    const amount = parseInteger(rest.shift() ?? throwSyntaxError());
    if (amount <= 0) throw new CommandError("ERR invalid expire time in 'set' command");
    return toTimestamp(amount);
  };
  const expiry: Record<string, () => number> = {
    ex: () => parseExpiry((seconds) => Date.now() + seconds * 1000),
    px: () => parseExpiry((milliseconds) => Date.now() + milliseconds),
    exat: () => parseExpiry((seconds) => seconds * 1000),
    pxat: () => parseExpiry((milliseconds) => milliseconds),
    keepttl: () => old?.expiresAt ?? Number.POSITIVE_INFINITY,
  };
  for (let word = rest.shift()?.toLowerCase(); word !== undefined; word = rest.shift()?.toLowerCase()) {
    const expiresAt = Object.hasOwn(expiry, word) ? expiry[word] : undefined;
    if (expiresAt && !expirySet) {
      options.expiresAt = expiresAt();
      expirySet = true;
    } else if (word === 'nx' && !options.onlyIfPresent) options.onlyIfAbsent = true;
    else if (word === 'xx' && !options.onlyIfAbsent) options.onlyIfPresent = true;
    else if (word === 'get') options.returnOld = true;
    else throwSyntaxError();
  }
  return options;
}

function throwSyntaxError(): never {
  throw new CommandError('ERR syntax error');
}

function parseInteger(text: string | undefined): number {
  const value = Number(text);
  if (text === undefined || !/^(0|-?[1-9]\d*)$/.test(text) || !Number.isSafeInteger(value)) {
    throw new CommandError('ERR value is not an integer or out of range');
  }
  return value;
}
