import {
  Client,
  discoverOAuthProtectedResourceMetadata,
  extractWWWAuthenticateParams,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { freePort } from '../../dev/system/listen';
import { startDependencies, startServiceProcess } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const port = await freePort();
const resource = `http://localhost:${port}/mcp/v1`;
const { idp, database, environment, stop } = await startDependencies();
stopAfterAll({ stop });
stopAfterAll(await startServiceProcess({ ...environment, IDP_OAUTH_AUDIENCE: resource }, port));

const { id: userId } = idp.createUser({ email: 'agent@example.com' });

/** Connects a client that sends an access token for this audience. */
async function connect(audience: string, scopes = ['profile']): Promise<Client> {
  const token = idp.oauthToken(userId, { audience, scopes });
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(resource), { authProvider: { token: async () => token } }),
  );
  return client;
}

test('A client without a token finds the authorization server by the challenge of the 401', async () => {
  const response = await fetch(resource, { method: 'POST', body: '{}' });
  const { resourceMetadataUrl = '', scope } = extractWWWAuthenticateParams(response);
  expect([response.status, scope]).toEqual([401, 'profile']);
  const metadata = await discoverOAuthProtectedResourceMetadata(resource, { resourceMetadataUrl });
  expect(metadata).toMatchObject({ resource, authorization_servers: [idp.issuer] });
});

test('A client with a token for this server lists its tools, and gets the internal id of the user', async () => {
  const client = await connect(resource);
  expect((await client.listTools()).tools).toMatchObject([{ name: 'whoami' }]);
  const [text] = await database.idsOf(userId);
  expect(await client.callTool({ name: 'whoami' })).toMatchObject({ content: [{ text }] });
  await client.close();
});

test('A client with a token for another audience, or without the scope, cannot connect', async () => {
  await expect(connect('https://other.example/')).rejects.toThrow(UnauthorizedError);
  await expect(connect(resource, ['email'])).rejects.toThrow();
});
