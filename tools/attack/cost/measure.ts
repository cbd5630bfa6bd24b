import { setTimeout as pause } from 'node:timers/promises';
import { processCpuMilliseconds } from '../../../bench/process-figures';
import { type CostRequest, send, serialize } from './request';

/** The server under measurement. */
export interface Server {
  readonly url: string;
  readonly pid: number;
}

/** Limits of one measurement. The measurement ends at the first limit that it reaches. `milliseconds` is server CPU time. */
export interface Effort {
  readonly requests: number;
  readonly milliseconds: number;
}

/** Mean cost of a request that was sent several times. */
export interface Cost {
  /** CPU time per request. It is the total of all threads of the server. */
  readonly milliseconds: number;
  /** Status of the last response. */
  readonly status: number;
}

const LOOK_EVERY_MS = 4;
/**
 * A server that uses less CPU time than this between two samples is idle. The value is above 0, because the timers of an idle
 * server use some CPU time.
 */
const IDLE_MS = 0.5;

/**
 * Waits until a process is idle and resolves with its total CPU time. A server may use CPU time after it has sent a response.
 */
async function cpuWhenIdle(pid: number): Promise<number> {
  let before = processCpuMilliseconds(pid);
  for (;;) {
    await pause(LOOK_EVERY_MS);
    const now = processCpuMilliseconds(pid);
    if (now - before < IDLE_MS) return now;
    before = now;
  }
}

/** Sends a request several times, one after another, and resolves with its mean cost. */
export async function measureCost(server: Server, request: CostRequest, effort: Effort): Promise<Cost> {
  const bytes = serialize(request);
  const before = await cpuWhenIdle(server.pid);
  let sent = 0;
  let status = 0;
  do {
    status = await send(server.url, bytes);
    sent += 1;
  } while (sent < effort.requests && processCpuMilliseconds(server.pid) - before < effort.milliseconds);
  return { milliseconds: ((await cpuWhenIdle(server.pid)) - before) / sent, status };
}
