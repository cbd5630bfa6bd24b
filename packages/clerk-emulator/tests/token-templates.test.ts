import { generateKeyPairSync } from 'node:crypto';
import { createRemoteJWKSet, importSPKI, jwtVerify } from 'jose';
import { expect, test } from 'vitest';
import { developmentBrowser } from './helpers/development-browser';
import { clerkFor, startForTest } from './helpers/emulator';
import { errorOf } from './helpers/requests';

const EMAIL = 'ada@example.com';
const PASSWORD = 'correct horse battery';

test('A token template fills its shortcodes, and a browser gets a token that the keys of the emulator verify', async () => {
  const claims = {
    aud: 'postgrest',
    email: '{{user.primary_email_address}}',
    verified: '{{user.email_verified}}',
    app_metadata: {
      plan: "{{user.public_metadata.plan || 'free'}}",
      seats: '{{user.public_metadata.seats.total}}',
    },
    greeting: 'Hello {{user.first_name}} {{user.last_name}}!',
    roles: ['{{org.role}}', 'static'],
    none: '{{user.public_metadata.none}}',
    sub: 'another',
    limit: 3,
  };
  const emulator = await startForTest({ tokenTemplates: [{ name: 'supabase', claims, lifetime: 600 }] });
  const clerk = clerkFor(emulator);
  const { id } = emulator.createUser({
    email: EMAIL,
    password: PASSWORD,
    firstName: 'Ada',
    lastName: 'Byron',
  });
  await clerk.users.updateUserMetadata(id, { publicMetadata: { seats: { total: 4 } } });
  emulator.createOrganization({ name: 'Acme', createdBy: id });
  const browser = await developmentBrowser(emulator);
  const session = (await browser.signIn(EMAIL, { password: PASSWORD })).response?.created_session_id ?? '';
  const path = `/v1/client/sessions/${session}/tokens`;
  const response = await browser.send('POST', `${path}/supabase`, {}, { origin: 'http://localhost:3000' });
  const { jwt } = await response.json();
  const keys = createRemoteJWKSet(new URL(`${emulator.url}/.well-known/jwks.json`));
  const { payload } = await jwtVerify(jwt, keys, { issuer: emulator.issuer, audience: 'postgrest' });
  expect(payload).toMatchObject({
    azp: 'http://localhost:3000',
    email: EMAIL,
    verified: true,
    app_metadata: { plan: 'free', seats: 4 },
    greeting: 'Hello Ada Byron!',
    roles: ['org:admin', 'static'],
    none: null,
    sub: id,
    limit: 3,
  });
  expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(600);
  expect(await browser.call('POST', `${path}/none`)).toMatchObject({
    status: 404,
    code: 'resource_not_found',
  });
});

test('The Backend API creates, changes and deletes token templates with a key of their own', async () => {
  const emulator = await startForTest();
  const { jwtTemplates, sessions } = clerkFor(emulator);
  const { id: userId } = emulator.createUser({ email: EMAIL });
  const { id: sessionId } = emulator.createSession(userId);
  const secret = 'a shared secret of the template!';
  const shared = { customSigningKey: true, signingAlgorithm: 'HS256', signingKey: secret };
  const { id } = await jwtTemplates.create({ name: 'hasura', claims: { role: 'user' }, ...shared });
  const verify = async (key: Uint8Array | Awaited<ReturnType<typeof importSPKI>>) =>
    (await jwtVerify((await sessions.getToken(sessionId, 'hasura')).jwt, key)).payload;
  expect(await verify(new TextEncoder().encode(secret))).toMatchObject({ role: 'user', sub: userId });
  const pair = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const own = { customSigningKey: true, signingAlgorithm: 'ES256', signingKey: pair.privateKey };
  await jwtTemplates.update({ templateId: id, name: 'hasura', claims: { role: 'admin' }, ...own });
  expect(await verify(await importSPKI(pair.publicKey, 'ES256'))).toMatchObject({ role: 'admin' });
  const unusable = jwtTemplates.create({ name: 'other', claims: {}, ...own, signingAlgorithm: 'RS256' });
  expect(await errorOf(unusable)).toMatchObject({ status: 422, parameter: 'signing_key' });
  const [listed] = (await jwtTemplates.list()).data;
  expect(listed).toMatchObject({ id, name: 'hasura', signingAlgorithm: 'ES256' });
  await jwtTemplates.delete(id);
  expect((await errorOf(sessions.getToken(sessionId, 'hasura'))).status).toBe(404);
});

test('Session tokens have the custom claims of the settings, which do not replace those of Clerk', async () => {
  const emulator = await startForTest({
    sessionClaims: { email: '{{user.primary_email_address}}', sid: 'x', o: 1 },
  });
  const { id } = emulator.createUser({ email: EMAIL });
  const organization = emulator.createOrganization({ name: 'Acme', createdBy: id });
  const session = emulator.createSession(id, organization.id);
  const keys = createRemoteJWKSet(new URL(`${emulator.url}/.well-known/jwks.json`));
  const { payload } = await jwtVerify(emulator.sessionToken(session.id), keys);
  expect(payload).toMatchObject({ email: EMAIL, sid: session.id, o: { id: organization.id } });
  const { id: outsider } = emulator.createUser({ email: 'outsider@example.com' });
  expect(() => emulator.createSession(outsider, organization.id)).toThrow('membership');
});
