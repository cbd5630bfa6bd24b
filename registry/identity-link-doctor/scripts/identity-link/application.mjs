import { createHmac, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

for (const file of ['.env.local', '.env']) if (existsSync(file)) process.loadEnvFile(file);

/** Address of the running application. */
export const url = process.env.APPLICATION_URL ?? 'http://localhost:3000';
export const REGISTER = '/auth/v1/register';
export const WEBHOOK = '/webhooks/idp/v1/user-created';

/** Opens a connection to DATABASE_URL with the driver of the Prisma adapter. */
export async function connect() {
  const adapter = createRequire(path.resolve('package.json')).resolve('@prisma/adapter-pg');
  const { Client } = createRequire(adapter)('pg');
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  return client;
}

/** Returns the number of links of a user. */
export async function countLinks(client, user) {
  const { rows } = await client.query('SELECT 1 FROM identity_links WHERE identity_provider_user_id = $1', [
    user,
  ]);
  return rows.length;
}

/** Deletes the links of the users whose id starts with a prefix. */
export const deleteLinks = (client, prefix) =>
  client.query('DELETE FROM identity_links WHERE starts_with(identity_provider_user_id, $1)', [prefix]);

/** Sends a request. Does not follow redirects. */
export const send = (route, init = {}) =>
  fetch(`${url}${route}`, { redirect: 'manual', signal: AbortSignal.timeout(30_000), ...init });

/** Returns a `user.created` event. */
export const userCreated = (id) => JSON.stringify({ type: 'user.created', object: 'event', data: { id } });

/** Returns the headers of a delivery. The signature is valid for exactly this body. */
export function sign(body) {
  const id = `msg_${randomUUID()}`;
  const timestamp = Math.floor(Date.now() / 1000);
  const secret = Buffer.from(
    (process.env.CLERK_WEBHOOK_SIGNING_SECRET ?? '').replace(/^whsec_/, ''),
    'base64',
  );
  const signature = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'svix-id': id, 'svix-timestamp': `${timestamp}`, 'svix-signature': `v1,${signature}` };
}

/** Delivers a webhook, by default with a valid signature. */
export const deliver = (body, headers = sign(body)) =>
  send(WEBHOOK, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body });
