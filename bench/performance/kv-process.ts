// Runs the key-value server (KV) of the cache in a separate process. The measurements then do not include its CPU time.

import { z } from 'zod';
import { redisEngine } from '../../dev/kv/redis';
import { startKvServer } from '../../dev/kv/server';

const { KV_TOKEN, REDIS_URL, PORT } = z
  .object({ KV_TOKEN: z.string(), REDIS_URL: z.string(), PORT: z.coerce.number() })
  .parse(process.env);

await startKvServer({ token: KV_TOKEN, port: PORT, engine: redisEngine(REDIS_URL) });
