import { randomBytes } from 'node:crypto';
import { type Emulator, startEmulator } from 'clerk-emulator';
import { Pool } from 'pg';
import { startDedicatedPostgres } from '../../tests/harness/dependencies/dedicated-postgres';
import { hasRedis, startRedis } from '../../tests/harness/dependencies/redis';
import { launch } from './launch';

/** Dependencies that all measured servers (targets) share: one database, one cache and one identity provider. */
export interface Fixtures {
  readonly databaseUrl: string;
  readonly pool: Pool;
  /** `redis://` URL of the cache. */
  readonly redisUrl: string;
  /**
   * URL and token of the cache for @vercel/kv, the KV client of the service. This client sends Redis commands to a REST server,
   * which stores its data in Redis.
   */
  readonly kv: { readonly url: string; readonly token: string };
  readonly idp: Emulator;
  readonly keys: { readonly secret: string; readonly publishable: string; readonly signing: string };
}

const KEYS = {
  secret: `sk_live_${randomBytes(20).toString('hex')}`,
  publishable: `pk_live_${Buffer.from('clerk.bench.example$').toString('base64')}`,
  signing: `whsec_${randomBytes(32).toString('base64')}`,
} as const;

/** Starts the dependencies and runs `work`. Then stops the dependencies, even if `work` rejects or a signal interrupts it. */
export async function withFixtures(work: (fixtures: Fixtures) => Promise<void>): Promise<void> {
  if (!hasRedis()) {
    throw new Error('redis-server is not on PATH. Install it (Debian package: redis-server).');
  }
  const stops: (() => Promise<unknown>)[] = [];
  let stopped: Promise<void> | undefined;
  const stopAll = async () => {
    for (const stop of stops.reverse()) await stop();
  };
  const stop = () => {
    stopped ??= stopAll();
    return stopped;
  };
  const interrupted = () => void stop().finally(() => process.exit(130));
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  try {
    const postgres = await startDedicatedPostgres();
    stops.push(postgres.stop);
    const redis = await startRedis();
    stops.push(redis.stop);
    const databaseUrl = new URL(postgres.template, postgres.url).href;
    const pool = new Pool({ connectionString: databaseUrl });
    stops.push(() => pool.end());
    const idp = await startEmulator({
      secretKey: KEYS.secret,
      publishableKey: KEYS.publishable,
      webhook: undefined,
    });
    stops.push(idp.stop);
    const token = randomBytes(24).toString('base64url');
    const kv = await launch({
      args: ['--import', 'tsx', 'bench/performance/kv-process.ts'],
      environment: { KV_TOKEN: token, REDIS_URL: redis.url },
    });
    stops.push(kv.stop);
    await work({
      databaseUrl,
      pool,
      redisUrl: redis.url,
      kv: { url: kv.url, token },
      idp,
      keys: KEYS,
    });
  } finally {
    await stop();
  }
}
