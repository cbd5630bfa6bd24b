import { execFile } from 'node:child_process';
import { cpSync, readFileSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { BUILD_FOLDER, build, withoutServiceVariables } from '../../tests/harness/build';
import { startStubServer } from '../../tests/harness/dependencies/stub-server';
import type { Fixtures } from './fixtures';
import { type LaunchOptions, launch, type Server } from './launch';

/** A server to measure. */
export interface Target {
  readonly name: string;
  /** Column title in the report. */
  readonly title: string;
  /** True if the target has the routes of the service. Otherwise it has only `GET /hello`. */
  readonly hasRoutes: boolean;
  /** Status of the response to a registration that creates a user. */
  readonly creates: 200 | 201;
  start(fixtures: Fixtures): Promise<Server>;
}

const project = path.resolve(import.meta.dirname, '../..');
const baselines = path.join(import.meta.dirname, 'baselines');
/** Returns the path of the command-line program of Next.js. */
const nextOf = (folder: string) => path.join(folder, 'node_modules/next/dist/bin/next');

/** Returns the environment variables that the baselines (the servers in baselines/) and the Clerk SDK read. */
function sdkVariables({ keys, idp, databaseUrl, kv, redisUrl }: Fixtures): Record<string, string> {
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

const nextTarget = (name: string, title: string, hasRoutes: boolean): Target => ({
  name,
  title,
  hasRoutes,
  creates: 200,
  start: (fixtures) =>
    nextStart(baselines, {
      cwd: path.join(baselines, name),
      environment: hasRoutes ? sdkVariables(fixtures) : {},
    }),
});

/** The reference: the report divides the CPU time of each target by the CPU time of this target. */
export const bare = nextTarget('bare', 'a bare Next.js route', false);
export const emptyMiddleware = nextTarget('empty-middleware', 'empty middleware.ts', false);
export const tutorial = nextTarget('tutorial', 'tutorial design', true);

/** Folder of an application that `buildItem` assembles from baselines/item and the registry items (folders of registry/). */
const ITEM_FOLDER = path.join(baselines, '.item');

export const item: Target = {
  name: 'item',
  title: 'registry item',
  hasRoutes: true,
  creates: 201,
  start: (fixtures) =>
    nextStart(baselines, {
      cwd: ITEM_FOLDER,
      environment: {
        ...sdkVariables(fixtures),
        CLERK_WEBHOOK_SIGNING_SECRET: fixtures.keys.signing,
      },
    }),
};

export const fastify: Target = {
  name: 'fastify',
  title: 'Fastify',
  hasRoutes: true,
  creates: 200,
  start: (fixtures) =>
    launch({
      args: ['server.mjs'],
      cwd: path.join(baselines, 'fastify'),
      environment: { ...sdkVariables(fixtures), NODE_ENV: 'production' },
    }),
};

/** Returns the environment variables that the service reads. */
export function serviceVariables({ keys, idp, databaseUrl, kv }: Fixtures): Record<string, string> {
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

const startService = (fixtures: Fixtures, more: Record<string, string> = {}) =>
  launch({
    args: [`${BUILD_FOLDER}/server.mjs`],
    cwd: project,
    environment: { NEXT_DIST_DIR: BUILD_FOLDER, ...serviceVariables(fixtures), ...more },
  });

export const service: Target = {
  name: 'service',
  title: 'this service',
  hasRoutes: true,
  creates: 201,
  start: (fixtures) => startService(fixtures),
};

/**
 * The service with telemetry. The collector discards the data. This target is measured only if the option `--targets` contains
 * its name, as in `--targets service,service-telemetry`.
 */
export const serviceWithTelemetry: Target = {
  ...service,
  name: 'service-telemetry',
  title: 'this service, telemetry on',
  async start(fixtures) {
    const collector = await startStubServer((request, response) => {
      request.resume().once('end', () => response.end());
    });
    const server = await startService(fixtures, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    const stop = async () => {
      await server.stop();
      await collector.stop();
    };
    return { ...server, stop };
  },
};

export const targets: readonly Target[] = [
  bare,
  emptyMiddleware,
  tutorial,
  item,
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

/** Throws if the baselines and the service use different versions of a package, because CPU times would not be comparable. */
function requireSameVersions(): void {
  const [serviceVersions, baselineVersions] = [project, baselines].map(
    (folder) =>
      Packages.parse(JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))).dependencies,
  );
  for (const [name, version] of Object.entries(baselineVersions ?? {})) {
    if ((serviceVersions?.[name] ?? version) !== version)
      throw new Error(
        `The service uses ${name} ${serviceVersions?.[name]}, but the baselines use ${version}. Use the same version in both package.json files.`,
      );
  }
}

async function buildBaselines({ keys }: Pick<Fixtures, 'keys'>): Promise<void> {
  const [wanted, installed] = ['package-lock.json', 'node_modules/.package-lock.json'].map((file) =>
    statSync(path.join(baselines, file), { throwIfNoEntry: false }),
  );
  if ((installed?.mtimeMs ?? 0) < (wanted?.mtimeMs ?? 0)) {
    await run(baselines, 'npm', ['ci', '--no-audit', '--no-fund']);
  }
  requireSameVersions();
  cpSync(path.join(project, 'lib/generated/prisma'), path.join(baselines, 'tutorial/generated'), {
    recursive: true,
  });
  for (const { name } of [bare, emptyMiddleware, tutorial]) {
    await run(path.join(baselines, name), process.execPath, [nextOf(baselines), 'build'], {
      NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY: keys.publishable,
    });
  }
}

/** Assembles the application in `ITEM_FOLDER` and builds it. */
async function buildItem({ keys }: Pick<Fixtures, 'keys'>): Promise<void> {
  rmSync(ITEM_FOLDER, { recursive: true, force: true });
  const registry = ['identity-link', 'identity-link-middleware', 'identity-link-cache'];
  for (const folder of [
    path.join(baselines, 'item'),
    ...registry.map((name) => path.join(project, 'registry', name)),
  ])
    cpSync(folder, ITEM_FOLDER, { recursive: true });
  const environment = { NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY: keys.publishable };
  await run(project, 'npx', ['prisma', 'generate', '--schema', path.join(ITEM_FOLDER, 'schema.prisma')]);
  await run(ITEM_FOLDER, process.execPath, [nextOf(baselines), 'build'], environment);
}

/** Installs the packages of the baselines if necessary, and builds all targets. */
export async function buildTargets(fixtures: Pick<Fixtures, 'keys'>): Promise<void> {
  await Promise.all([buildBaselines(fixtures).then(() => buildItem(fixtures)), build()]);
}
