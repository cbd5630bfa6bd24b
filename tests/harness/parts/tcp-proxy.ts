import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** How the proxy treats connections, those that are open included. */
export type Treatment =
  /** Bytes pass. */
  | 'forward'
  /** Nothing listens: new connections are refused, open ones reset. */
  | 'refuse'
  /** Connections are accepted and reset at once, open ones too. */
  | 'reset'
  /** Connections are accepted, open ones stay, and nothing is ever answered. */
  | 'black-hole'
  /** Open connections are reset. New ones are accepted, and their bytes wait until the next treatment. */
  | 'hold'
  /** The first bytes of an answer pass, the rest never comes. */
  | 'half-an-answer';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface TcpProxy {
  readonly port: number;
  /** How many connections were accepted so far, those that were reset at once included. */
  readonly connections: number;
  treat(treatment: Treatment): Promise<void>;
  /** Where connections lead from now on; those that are open are reset. */
  lead(target: Address): void;
  /** Called with each chunk that a client sends, before it is forwarded. */
  onClientData: ((chunk: Buffer) => void) | undefined;
  /** Called with each chunk that the target answers. */
  onTargetData: ((chunk: Buffer) => void) | undefined;
  stop(): Promise<void>;
}

const HALF_AN_ANSWER_BYTES = 20;

/** A proxy on the loopback interface that can fail in the ways networks do. */
export async function startTcpProxy(initialTarget: Address): Promise<TcpProxy> {
  let treatment: Treatment = 'forward';
  let target = initialTarget;
  let connections = 0;
  const sockets = new Set<Socket>();
  const track = (socket: Socket) => {
    sockets.add(socket);
    // A reset is what this proxy is for: nobody needs to hear of it.
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
      if (treatment === 'forward') client.write(chunk);
      if (treatment === 'half-an-answer') client.write(chunk.subarray(0, HALF_AN_ANSWER_BYTES));
    });
    if (treatment === 'hold') client.pause();
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => {
      if (treatment === 'forward') client.destroy();
    });
  });
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  const close = async () => {
    const closed = once(server, 'close');
    server.close();
    resetAll();
    await closed;
  };
  await listen(0);
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The proxy has no port');
  const { port } = address;
  const proxy: TcpProxy = {
    port,
    get connections() {
      return connections;
    },
    async treat(next) {
      treatment = next;
      if (next === 'refuse' && server.listening) await close();
      if (next !== 'refuse' && !server.listening) await listen(port);
      if (next === 'reset' || next === 'hold') resetAll();
      else for (const socket of sockets) socket.resume();
    },
    lead(next) {
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
