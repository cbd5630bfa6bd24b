import { Webhook } from 'svix';
import { upsertUser } from '../../../../../users';

export async function POST(request) {
  const body = await request.text();
  try {
    new Webhook(process.env.WEBHOOK_SIGNING_SECRET).verify(body, Object.fromEntries(request.headers));
  } catch {
    return Response.json({ message: 'Invalid webhook signature' }, { status: 400 });
  }
  const { type, data } = JSON.parse(body);
  if (type === 'user.created') await upsertUser(data.id);
  return Response.json({ received: true, eventType: type });
}
