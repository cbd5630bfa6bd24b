import type { Kind } from '#lib/core/ports';
import { type KvEngine, memoryEngine, startKvServer } from '../../../dev/kv';
import { type Address, startTcpProxy, type TcpProxy } from './tcp-proxy';

/** Returns the key under which the service caches the internal id of a user or tenant. */
export const cacheKey = (providerId: string, kind: Kind = 'user') => `auth:${kind}-id-by-idp:${providerId}`;

/** A KV server, which is the cache of the service, behind a proxy. */
export interface TestKv {
  readonly engine: KvEngine;
  readonly proxy: TcpProxy;
  /** Address of the server, which is the target of the proxy. */
  readonly address: Address;
  /** Variables that connect the service to the proxy. */
  readonly environment: { readonly KV_REST_API_URL: string; readonly KV_REST_API_TOKEN: string };
  /** Returns the cached value of a user or tenant. Returns null if there is none, and for a blocked id. */
  cachedId(providerId: string, kind?: Kind): Promise<unknown>;
  /** Caches an internal id of a user or tenant. */
  cacheId(providerId: string, id: string, kind?: Kind): Promise<unknown>;
  /** Returns the commands that reached the server since the last call. Their names are in upper case. */
  takeCommands(): string[][];
  /** Called before each command. The command waits for the returned promise, and fails if that promise rejects. */
  beforeCommand: (command: string) => Promise<void>;
  stop(): Promise<void>;
}

/** Starts a KV server that stores its data in memory. */
export async function startTestKv(): Promise<TestKv> {
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
  const kv: TestKv = {
    engine,
    proxy,
    address,
    environment: { KV_REST_API_URL: `http://127.0.0.1:${proxy.port}`, KV_REST_API_TOKEN: server.token },
    async cachedId(providerId, kind) {
      const value = await engine.call('GET', cacheKey(providerId, kind));
      return value === '-' ? null : value;
    },
    cacheId: (providerId, id, kind) => engine.call('SET', cacheKey(providerId, kind), id),
    takeCommands: () => commands.splice(0),
    beforeCommand: async () => undefined,
    async stop() {
      await proxy.stop();
      await server.stop();
    },
  };
  return kv;
}
