import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import { kv } from '@vercel/kv';
import { PrismaClient } from '../generated/prisma/client';

const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: process.env.DATABASE_URL }) });

/** Returns the internal id of an identity-provider user and creates the user if necessary. */
export async function upsertUser(identityProviderUserId) {
  const { id } = await prisma.user.upsert({
    where: { identityProviderUserId },
    update: {},
    create: { id: randomUUID(), identityProviderUserId },
  });
  return id;
}

/** Returns the internal id and caches it for ten minutes. */
export async function cachedUserId(identityProviderUserId) {
  const key = `tutorial:${identityProviderUserId}`;
  const cached = await kv.get(key);
  if (cached) return cached;
  const id = await upsertUser(identityProviderUserId);
  await kv.set(key, id, { ex: 600 });
  return id;
}
