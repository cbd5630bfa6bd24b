import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import nextEnv from '@next/env';
import { beginShutdown, closeDependencies } from './lib/concurrency/shutdown-state';
import { setServerActions } from './lib/http/server-action';
import { httpServer } from './lib/server/http-server';

const MAX_PORT = 65_535;

/**
 * `npm start`: serves the production build. `-p` or PORT sets the port (default 3000), and `-H` sets the host name. On
 * SIGTERM, the process drains its connections and exits with code 0 within 9 s. SIGINT ends it immediately.
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', short: 'p', default: process.env['PORT'] || '3000' },
    hostname: { type: 'string', short: 'H' },
  },
});
const port = Number(values.port);
if (!/^\d+$/.test(values.port) || port > MAX_PORT) {
  process.stderr.write(
    `Invalid port: ${values.port}. Pass a number from 0 to ${MAX_PORT} with -p or PORT.\n`,
  );
  process.exit(1);
}
const projectFolder = path.dirname(import.meta.dirname);
/**
 * Folder of the build. The default is the folder of this compiled file. NEXT_DIST_DIR selects another folder. `next build`
 * writes to the same folder, because next.config.ts also reads this variable.
 */
const buildFolder = path.resolve(process.env['NEXT_DIST_DIR'] ?? import.meta.dirname);

/** Maximum duration of a shutdown. It is below 10 s, because platforms send SIGKILL after 10 s. */
const SHUTDOWN_MS = 9_000;
/** Maximum time to complete the requests in flight: 8 s for a registration (lib/register.ts) and 500 ms for a cache call. */
const DRAIN_MS = 8_500;

const readBuildFile = (name: string) => JSON.parse(readFileSync(path.join(buildFolder, name), 'utf8'));

process.title = 'identity-link';
Object.assign(process.env, { NODE_ENV: 'production' });
nextEnv.loadEnvConfig(projectFolder);
// Next.js reads the configuration of the build from this variable, as in its standalone output. Without this variable, Next.js
// would load a compiler at every start to read next.config.ts.
process.env['__NEXT_PRIVATE_STANDALONE_CONFIG'] = JSON.stringify({
  ...readBuildFile('required-server-files.json').config,
  distDir: path.relative(projectFolder, buildFolder),
});
setServerActions(readBuildFile('server/server-reference-manifest.json'));
const { default: next } = await import('next');
const app = next({
  dir: projectFolder,
  hostname: values.hostname ?? 'localhost',
  port,
  // Next.js adds its upgrade listener to this unused server. The server that accepts connections has no upgrade listener,
  // so Node.js handles an upgrade request like any other request.
  httpServer: createServer(),
});
await app.prepare();

const { server, drain } = httpServer(app.getRequestHandler());
server.listen(port, values.hostname, () => {
  const address = server.address();
  const listening = typeof address === 'object' && address ? address.port : port;
  process.stdout.write(`Listening on http://${values.hostname ?? 'localhost'}:${listening}\n`);
});
server.once('error', (error) => {
  const isPortInUse = 'code' in error && error.code === 'EADDRINUSE';
  process.stderr.write(
    isPortInUse ? `Port ${port} is in use. Choose another port with -p.\n` : `${error.message}\n`,
  );
  process.exit(1);
});

process.on('SIGTERM', async () => {
  if (!beginShutdown()) return;
  setTimeout(() => process.exit(0), SHUTDOWN_MS).unref();
  await Promise.race([drain(), pause(DRAIN_MS)]);
  await closeDependencies();
  process.exit(0);
});
