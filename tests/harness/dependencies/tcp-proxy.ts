import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { listen } from '../../../dev/system/listen';

/** Behaviour of the proxy. It applies to new and to open connections. */
type Treatment =
  /** Forwards all bytes. */
  | 'forward'
  /** Does not listen. New connections are refused, and open connections are reset. */
  | 'refuse'
  /** Resets every connection, new or open. */
  | 'reset'
  /** Accepts connections and drops all bytes. */
  | 'black-hole'
  /** Holds the bytes of all connections until the next treatment. Those of a connection that its client closes arrive then. */
  | 'stall'
  /** Resets open connections. Accepts new connections and holds their bytes until the next treatment. */
  | 'hold';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface TcpProxy {
  readonly port: number;
  /** Number of accepted connections so far, including those that were reset immediately. */
  readonly connections: number;
  treat(treatment: Treatment): Promise<void>;
  /** Sets the target of new connections and resets open connections. */
  setTarget(target: Address): void;
  /** Called with each chunk that a client sends, before the chunk is forwarded or dropped. */
  onClientData: ((chunk: Buffer) => void) | undefined;
  /** Called with each chunk that the target sends, before the chunk is forwarded or dropped. */
  onTargetData: ((chunk: Buffer) => void) | undefined;
  stop(): Promise<void>;
}

/** Starts a TCP proxy that simulates network failures. The proxy listens on 127.0.0.1. */
export async function startTcpProxy(initialTarget: Address): Promise<TcpProxy> {
  let treatment: Treatment = 'forward';
  let target = initialTarget;
  let connections = 0;
  const sockets = new Set<Socket>();
  const track = (socket: Socket) => {
    sockets.add(socket);
    if (treatment === 'stall') socket.cork();
    // Connection errors are expected, so they are not reported.
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
  };
  const resetAll = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  const server = createServer((client) => {
    connections += 1;
    track(client);
    if (treatment === 'reset') {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(target);
    track(upstream);
    client.on('data', (chunk) => {
      proxy.onClientData?.(chunk);
      if (treatment === 'black-hole') return;
      upstream.write(chunk);
    });
    upstream.on('data', (chunk) => {
      proxy.onTargetData?.(chunk);
      if (treatment === 'forward' || treatment === 'stall') client.write(chunk);
    });
    if (treatment === 'hold') client.pause();
    client.on('close', () => upstream.end());
    upstream.on('close', () => {
      if (treatment === 'forward') client.destroy();
    });
  });
  const close = async () => {
    const closed = once(server, 'close');
    server.close();
    resetAll();
    await closed;
  };
  const port = await listen(server);
  const proxy: TcpProxy = {
    port,
    get connections() {
      return connections;
    },
    async treat(next) {
      treatment = next;
      if (next === 'refuse' && server.listening) await close();
      if (next !== 'refuse' && !server.listening) await listen(server, port);
      if (next === 'reset' || next === 'hold') resetAll();
      else for (const socket of sockets) next === 'stall' ? socket.cork() : socket.resume().uncork();
    },
    setTarget(next) {
      target = next;
      resetAll();
    },
    onClientData: undefined,
    onTargetData: undefined,
    async stop() {
      if (server.listening) await close();
    },
  };
  return proxy;
}
