import { execFile } from 'node:child_process';
import { cpSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { BUILD_FOLDER, build, withoutServiceVariables } from '../../tests/harness/build';
import { startImpostor } from '../../tests/harness/parts/impostor';
import { type LaunchOptions, launch, type Server } from './launch';
import type { Surroundings } from './surroundings';

/** Something that is measured. */
export interface Target {
  readonly name: string;
  /** What it is, for the reader of a table. */
  readonly title: string;
  /** Whether it has the service's routes; otherwise it has `GET /hello` alone. */
  readonly hasRoutes: boolean;
  /** The status of a registration that creates a user. */
  readonly creates: 200 | 201;
  start(surroundings: Surroundings): Promise<Server>;
}

const project = path.resolve(import.meta.dirname, '../..');
const neighbours = path.join(import.meta.dirname, 'neighbours');
const nextOf = (folder: string) => path.join(folder, 'node_modules/next/dist/bin/next');

/** Under the names that the provider's SDK reads. */
function sdkVariables({ keys, idp, databaseUrl, kv, redisUrl }: Surroundings): Record<string, string> {
  return {
    CLERK_SECRET_KEY: keys.secret,
    CLERK_PUBLISHABLE_KEY: keys.publishable,
    NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY: keys.publishable,
    CLERK_API_URL: idp.url,
    CLERK_JWT_KEY: idp.publicKeyPem,
    CLERK_TELEMETRY_DISABLED: '1',
    NEXT_PUBLIC_CLERK_TELEMETRY_DISABLED: '1',
    WEBHOOK_SIGNING_SECRET: keys.signing,
    DATABASE_URL: databaseUrl,
    KV_REST_API_URL: kv.url,
    KV_REST_API_TOKEN: kv.token,
    REDIS_URL: redisUrl,
  };
}

const nextStart = (packages: string, options: Omit<LaunchOptions, 'args'>) =>
  launch({ args: [nextOf(packages), 'start', '-H', 'localhost'], ...options });

const ownNext = (name: string, title: string, hasRoutes: boolean): Target => ({
  name,
  title,
  hasRoutes,
  creates: 200,
  start: (surroundings) =>
    nextStart(neighbours, {
      cwd: path.join(neighbours, name),
      environment: hasRoutes ? sdkVariables(surroundings) : {},
    }),
});

/** The reference of every ratio. */
export const bare = ownNext('bare', 'a bare Next.js route', false);
export const emptyMiddleware = ownNext('empty-middleware', 'Next.js with an empty middleware.ts', false);
export const tutorial = ownNext('tutorial', 'the tutorial’s shape', true);

export const fastify: Target = {
  name: 'fastify',
  title: 'Fastify, the provider’s plugin, ioredis',
  hasRoutes: true,
  creates: 200,
  start: (surroundings) =>
    launch({
      args: ['server.mjs'],
      cwd: path.join(neighbours, 'fastify'),
      environment: { ...sdkVariables(surroundings), NODE_ENV: 'production' },
    }),
};

/** Under the names that this service reads. */
export function serviceVariables({ keys, idp, databaseUrl, kv }: Surroundings): Record<string, string> {
  return {
    IDP_SECRET_KEY: keys.secret,
    IDP_PUBLISHABLE_KEY: keys.publishable,
    IDP_WEBHOOK_SIGNING_SECRET: keys.signing,
    IDP_JWT_KEY: idp.publicKeyPem,
    DATABASE_URL: databaseUrl,
    KV_REST_API_URL: kv.url,
    KV_REST_API_TOKEN: kv.token,
  };
}

const startService = (surroundings: Surroundings, more: Record<string, string> = {}) =>
  launch({
    args: [`${BUILD_FOLDER}/server.mjs`],
    cwd: project,
    environment: { NEXT_DIST_DIR: BUILD_FOLDER, ...serviceVariables(surroundings), ...more },
  });

export const service: Target = {
  name: 'service',
  title: 'this service',
  hasRoutes: true,
  creates: 201,
  start: (surroundings) => startService(surroundings),
};

/** Measured where it is asked for: `--targets service,service-telemetry`. What it sends is taken and thrown away. */
export const serviceWithTelemetry: Target = {
  ...service,
  name: 'service-telemetry',
  title: 'this service, telemetry on',
  async start(surroundings) {
    const collector = await startImpostor((request, response) => {
      request.resume().once('end', () => response.end());
    });
    const server = await startService(surroundings, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    const stop = async () => {
      await server.stop();
      await collector.stop();
    };
    return { ...server, stop };
  },
};

/** All of them, the reference first. */
export const targets: readonly Target[] = [
  bare,
  emptyMiddleware,
  tutorial,
  fastify,
  service,
  serviceWithTelemetry,
];

const execute = promisify(execFile);

const run = (
  cwd: string,
  command: string,
  args: readonly string[],
  environment: Record<string, string> = {},
) =>
  execute(command, args, {
    cwd,
    env: { ...withoutServiceVariables(), ...environment },
    timeout: 300_000,
  });

const Packages = z.object({ dependencies: z.record(z.string(), z.string()) });

/** What the neighbours and the service both use must be the same: it is not versions that are compared. */
function requireSameVersions(): void {
  const [ours, theirs] = [project, neighbours].map(
    (folder) =>
      Packages.parse(JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))).dependencies,
  );
  for (const [name, version] of Object.entries(theirs ?? {})) {
    if ((ours?.[name] ?? version) !== version)
      throw new Error(`${name} is ${ours?.[name]} here, ${version} at the neighbours`);
  }
}

async function buildNeighbours({ keys }: Pick<Surroundings, 'keys'>): Promise<void> {
  const [wanted, installed] = ['package-lock.json', 'node_modules/.package-lock.json'].map((file) =>
    statSync(path.join(neighbours, file), { throwIfNoEntry: false }),
  );
  if ((installed?.mtimeMs ?? 0) < (wanted?.mtimeMs ?? 0)) {
    await run(neighbours, 'npm', ['ci', '--no-audit', '--no-fund']);
  }
  requireSameVersions();
  cpSync(path.join(project, 'lib/generated/prisma'), path.join(neighbours, 'tutorial/generated'), {
    recursive: true,
  });
  for (const { name } of [bare, emptyMiddleware, tutorial]) {
    await run(path.join(neighbours, name), process.execPath, [nextOf(neighbours), 'build'], {
      NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY: keys.publishable,
    });
  }
}

/** Installs the neighbours' packages unless they are there, and builds all that has to be built. */
export async function buildTargets(surroundings: Pick<Surroundings, 'keys'>): Promise<void> {
  await Promise.all([buildNeighbours(surroundings), build()]);
}
