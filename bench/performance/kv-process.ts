import { z } from 'zod';
import { redisEngine } from '../../dev/kv/redis';
import { startKvServer } from '../../dev/kv/server';

/** The KV server over a Redis, as a process of its own: what it costs is no part of what is measured. */
const { KV_TOKEN, REDIS_URL, PORT } = z
  .object({ KV_TOKEN: z.string(), REDIS_URL: z.string(), PORT: z.coerce.number() })
  .parse(process.env);

await startKvServer({ token: KV_TOKEN, port: PORT, engine: redisEngine(REDIS_URL) });
