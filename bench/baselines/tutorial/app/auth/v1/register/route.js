import { auth } from '@clerk/nextjs/server';
import { cachedUserId, upsertUser } from '../../../../users';

export async function POST(request) {
  const { userId } = await auth();
  if (!userId) return Response.json({ message: 'Unauthorized' }, { status: 401 });
  await cachedUserId(userId);
  const { identityProviderUserId } = await request.json();
  return Response.json({ userId: await upsertUser(identityProviderUserId), identityProviderUserId });
}
