import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import nextEnv from '@next/env';
import { beginShutdown, closeDependencies, whenIdle } from './lib/concurrency/shutdown';
import { httpServer } from './lib/server/http-server';

/**
 * `npm start`: serves the production build. `-p` or PORT chooses the port (3000), `-H` the host name. SIGTERM drains the
 * connections and ends the process with exit code 0 within 9 s.
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', short: 'p', default: process.env['PORT'] ?? '3000' },
    hostname: { type: 'string', short: 'H' },
  },
});
const port = Number(values.port);
const buildFolder = import.meta.dirname;
const projectFolder = path.dirname(buildFolder);

/** Below the 10 s that platforms grant between SIGTERM and SIGKILL. */
const SHUTDOWN_MS = 9_000;
/** Leaves time to close the dependencies if clients do not let the connections drain. */
const DRAIN_MS = 7_000;

process.title = 'identity-link';
Object.assign(process.env, { NODE_ENV: 'production' });
nextEnv.loadEnvConfig(projectFolder);
// The configuration of the build, as the server of Next.js' standalone output passes it: next.config.ts is not compiled again.
process.env['__NEXT_PRIVATE_STANDALONE_CONFIG'] = JSON.stringify(
  JSON.parse(readFileSync(path.join(buildFolder, 'required-server-files.json'), 'utf8')).config,
);
const { default: next } = await import('next');
const app = next({
  dir: projectFolder,
  hostname: values.hostname ?? 'localhost',
  port,
  // Next.js listens for upgrades on this server, so it never gets one: Node.js answers them like any other request.
  httpServer: createServer(),
});
await app.prepare();

const { server, drain } = httpServer(app.getRequestHandler());
server.listen(port, values.hostname, () => {
  const address = server.address();
  const listening = typeof address === 'object' && address ? address.port : port;
  process.stdout.write(`Listening on http://${values.hostname ?? 'localhost'}:${listening}\n`);
});
server.once('error', ({ message }) => {
  process.stderr.write(`${message}\n`);
  process.exit(1);
});

process.on('SIGTERM', async () => {
  if (!beginShutdown()) return;
  setTimeout(() => process.exit(0), SHUTDOWN_MS).unref();
  await Promise.race([drain(), pause(DRAIN_MS, undefined, { ref: false })]);
  await whenIdle();
  await closeDependencies();
  process.exit(0);
});
