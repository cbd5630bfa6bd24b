import { PrismaPg } from '@prisma/adapter-pg';
import { Pool } from 'pg';
import { PrismaClient } from '#lib/generated/prisma/client';
import { type Figures, spreadOf } from './figures';
import type { Surroundings } from './surroundings';

const CALLS = 500;

/** The two statements of a registration: the first in short for what Prisma makes, the second as in lib/register.ts. */
export const LOOK_UP =
  'SELECT id, identity_provider_user_id FROM users WHERE identity_provider_user_id IN ($1)';
export const INSERT = `INSERT INTO public.users (id, identity_provider_user_id)
    SELECT * FROM unnest($1::uuid[], $2::text[])
    ON CONFLICT (identity_provider_user_id) DO NOTHING
    RETURNING id`;
/** In short for what Prisma makes of a `createManyAndReturn`. */
const PRISMAS_INSERT =
  'INSERT INTO users (id, identity_provider_user_id) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id';

/** Processor time of this process for each of so many calls, one after the other. */
async function microsecondsEach(call: (index: number) => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  for (let index = 0; index < CALLS; index += 1) await call(index);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

/**
 * What Prisma costs over the pool that it uses: the two statements of a registration by either, in turns, and the insert once
 * more in Prisma's own words.
 */
export async function measureStatements(
  { databaseUrl }: Surroundings,
  rounds: number,
): Promise<NonNullable<Figures['statements']>> {
  const pool = new Pool({ connectionString: databaseUrl, max: 1 });
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: databaseUrl, max: 1 }) });
  let count = 0;
  const fresh = () => {
    count += 1;
    return { id: crypto.randomUUID(), identityProviderUserId: `user_statement_${count}` };
  };
  const statements = [
    {
      statement: 'look up a user',
      pool: (index: number) => pool.query(LOOK_UP, [`user_statement_${index + 1}`]),
      prisma: (index: number) =>
        prisma.user.findMany({
          where: { identityProviderUserId: { in: [`user_statement_${index + 1}`] } },
          select: { id: true, identityProviderUserId: true },
        }),
    },
    {
      statement: 'insert a user, in Prisma’s own words',
      pool: () => {
        const { id, identityProviderUserId } = fresh();
        return pool.query(PRISMAS_INSERT, [id, identityProviderUserId]);
      },
      prisma: () =>
        prisma.user.createManyAndReturn({ data: [fresh()], skipDuplicates: true, select: { id: true } }),
    },
    {
      statement: 'insert a user, in SQL',
      pool: () => {
        const { id, identityProviderUserId } = fresh();
        return pool.query(INSERT, [[id], [identityProviderUserId]]);
      },
      prisma: () => {
        const { id, identityProviderUserId } = fresh();
        return prisma.$queryRawUnsafe(INSERT, [id], [identityProviderUserId]);
      },
    },
  ];
  try {
    const figures: NonNullable<Figures['statements']> = [];
    for (const { statement, ...by } of statements.reverse()) {
      const pooled: number[] = [];
      const prismas: number[] = [];
      for (let round = 0; round <= rounds; round += 1) {
        const each = [await microsecondsEach(by.pool), await microsecondsEach(by.prisma)];
        // The first round warms up.
        if (round > 0) {
          pooled.push(each[0] ?? 0);
          prismas.push(each[1] ?? 0);
        }
      }
      figures.push({
        statement,
        poolMicroseconds: spreadOf(pooled).median,
        prismaMicroseconds: spreadOf(prismas).median,
      });
    }
    return figures;
  } finally {
    await prisma.$disconnect();
    await pool.end();
  }
}
