import type { Kind } from '#lib/core/ports';
import { memoryEngine, startKvServer } from '../../../dev/kv';
import { startTcpProxy } from './tcp-proxy';

/** Returns the key under which the service caches the internal id of a user or tenant. */
export const cacheKey = (providerId: string, kind: Kind = 'user') => `auth:${kind}-id-by-idp:${providerId}`;

/** Starts a KV server that stores its data in memory, behind a proxy. It is the cache of the service. */
export async function startTestKv() {
  const engine = memoryEngine();
  const commands: string[][] = [];
  const server = await startKvServer({
    token: 'kv-token-of-the-tests',
    engine: {
      async call(command, ...args) {
        commands.push([command.toUpperCase(), ...args]);
        await kv.beforeCommand(command);
        return engine.call(command, ...args);
      },
    },
  });
  const { hostname: host, port } = new URL(server.url);
  const address = { host, port: Number(port) };
  const proxy = await startTcpProxy(address);
  const kv = {
    engine,
    proxy,
    /** Address of the server, which is the target of the proxy. */
    address,
    /** Variables that connect the service to the proxy. */
    environment: { KV_REST_API_URL: `http://127.0.0.1:${proxy.port}`, KV_REST_API_TOKEN: server.token },
    /** Returns the cached value of a user or tenant. Returns null if there is none, and for a blocked id. */
    async cachedId(providerId: string, kind?: Kind) {
      const value = await engine.call('GET', cacheKey(providerId, kind));
      return value === '-' ? null : value;
    },
    /** Caches an internal id of a user or tenant. */
    cacheId: (providerId: string, id: string, kind?: Kind) =>
      engine.call('SET', cacheKey(providerId, kind), id),
    /** Returns the commands that reached the server since the last call. Their names are in upper case. */
    takeCommands: () => commands.splice(0),
    /** Called before each command. The command waits for the returned promise, and fails if that promise rejects. */
    beforeCommand: async (_command: string): Promise<void> => undefined,
    async stop() {
      await proxy.stop();
      await server.stop();
    },
  };
  return kv;
}
