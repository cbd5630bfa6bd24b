import { auth } from '@clerk/nextjs/server';
import { cachedUserId } from '../../../../users';

export async function GET() {
  const { userId } = await auth();
  if (!userId) return Response.json({ message: 'Unauthorized' }, { status: 401 });
  return Response.json({ userId: await cachedUserId(userId), identityProviderUserId: userId });
}
