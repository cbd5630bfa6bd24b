import { randomUUID } from 'node:crypto';
import { clerkPlugin, getAuth } from '@clerk/fastify';
import Fastify from 'fastify';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import { Webhook } from 'svix';

/**
 * Server that the benchmark compares with the service. It implements the measured routes with Fastify and uses the cache over
 * the Redis protocol. The comparison shows the overhead of two choices of the service: Next.js, and the REST protocol of its
 * cache.
 */
const { DATABASE_URL, REDIS_URL, WEBHOOK_SIGNING_SECRET, CLERK_JWT_KEY, PORT } = process.env;
const redis = new Redis(REDIS_URL);
const pool = new Pool({ connectionString: DATABASE_URL });
const webhook = new Webhook(WEBHOOK_SIGNING_SECRET);

async function upsertUser(identityProviderUserId) {
  const { rows } = await pool.query(
    `INSERT INTO users (id, identity_provider_user_id) VALUES ($1, $2)
     ON CONFLICT (identity_provider_user_id) DO UPDATE SET identity_provider_user_id = excluded.identity_provider_user_id
     RETURNING id`,
    [randomUUID(), identityProviderUserId],
  );
  return rows[0].id;
}

async function cachedUserId(identityProviderUserId) {
  const key = `fastify:${identityProviderUserId}`;
  const cached = await redis.get(key);
  if (cached) return cached;
  const id = await upsertUser(identityProviderUserId);
  await redis.set(key, id, 'EX', 600);
  return id;
}

async function guard(request, reply) {
  const { userId } = getAuth(request);
  if (!userId) return reply.code(401).send({ message: 'Unauthorized' });
  request.caller = { userId: await cachedUserId(userId), identityProviderUserId: userId };
}

const app = Fastify();

app.register((guarded, _options, done) => {
  guarded.register(clerkPlugin, { jwtKey: CLERK_JWT_KEY });
  guarded.addHook('preHandler', guard);
  guarded.get('/users/v1/me', ({ caller }) => caller);
  guarded.post('/auth/v1/register', async ({ body: { identityProviderUserId } }) => ({
    userId: await upsertUser(identityProviderUserId),
    identityProviderUserId,
  }));
  done();
});

app.register((webhooks, _options, done) => {
  webhooks.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, parsed) =>
    parsed(null, body),
  );
  webhooks.post('/webhooks/idp/v1/user-created', async ({ body, headers }, reply) => {
    try {
      webhook.verify(body, headers);
    } catch {
      return reply.code(400).send({ message: 'Invalid webhook signature' });
    }
    const { type, data } = JSON.parse(body);
    if (type === 'user.created') await upsertUser(data.id);
    return { received: true, eventType: type };
  });
  done();
});

await app.listen({ host: 'localhost', port: Number(PORT) });
