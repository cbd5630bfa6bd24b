import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { recordResponse } from '../answers';
import { answersIn } from './raw-answers';

/** A fresh connection to the service. Rejects where nobody listens; what becomes of it later is no error. */
export async function connected(serviceUrl: string): Promise<Socket> {
  const socket = connect(Number(new URL(serviceUrl).port), 'localhost');
  await once(socket, 'connect');
  return socket.on('error', () => undefined);
}

/** What a server sent back on one connection. */
export interface RawAnswer {
  /** Of every response on it, in order. */
  readonly statuses: readonly number[];
  readonly text: string;
  /** In how many pieces it arrived. */
  readonly pieces: number;
  /** The server ended the connection, or it was still open when the time was over. */
  readonly closed: boolean;
  /** How much of the endless part the server took. */
  readonly bytesWritten: number;
}

export interface RawRequest {
  /** Sent as they are, as Latin-1. */
  readonly bytes: string;
  /** Sent again and again behind `bytes`, as fast as the server takes it, or with a pause between. */
  readonly endless?: { readonly chunk: string; readonly pauseMilliseconds: number };
  /** Takes nothing of what comes back: it then only learns that the connection is gone, by sending more. */
  readonly takesNothing?: boolean;
  /** When to give up: long, for it only ends a test that fails. */
  readonly milliseconds?: number;
}

/** Writes bytes to a fresh connection and resolves with what came back once the server has closed it. */
export function exchange(serviceUrl: string, request: RawRequest): Promise<RawAnswer> {
  const { bytes, endless, takesNothing = false, milliseconds = 40_000 } = request;
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(serviceUrl).port), 'localhost');
    const chunks: Buffer[] = [];
    let pause: NodeJS.Timeout | undefined;
    const done = (closed: boolean) => {
      clearTimeout(bound);
      clearTimeout(pause);
      socket.destroy();
      const text = Buffer.concat(chunks).toString('latin1');
      for (const answer of answersIn(request.bytes, text)) recordResponse(answer);
      const statuses = [...text.matchAll(/HTTP\/1\.[01] (\d{3}) /g)].map(([, status]) => Number(status));
      resolve({ statuses, text, pieces: chunks.length, closed, bytesWritten: socket.bytesWritten });
    };
    const bound = setTimeout(() => done(false), milliseconds);
    const feed = () => {
      if (!endless || socket.destroyed) return;
      socket.write(endless.chunk, 'latin1', () => {
        pause = setTimeout(feed, endless.pauseMilliseconds);
      });
    };
    socket
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('error', () => undefined)
      .on('close', () => done(true));
    if (takesNothing) socket.pause();
    socket.write(bytes, 'latin1', feed);
  });
}

/** A request line and headers, up to the empty line; the server is asked to close the connection behind the answer. */
export function requestHead(line: string, headers: Record<string, string> = {}): string {
  const all = { Host: 'localhost', Connection: 'close', ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line}\r\n${lines.join('')}\r\n`;
}
