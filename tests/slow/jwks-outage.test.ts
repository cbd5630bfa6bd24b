import { expect, test } from 'vitest';
import { startStubServer } from '../harness/dependencies/stub-server';
import { cookie, deliver, me, send, tokenFor, userCreated } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const backendApi = stopAfterAll(await startStubServer());
const environment = { IDP_JWT_KEY: '', CLERK_API_URL: backendApi.url };
const service = stopAfterAll(await startTestService({ environment }));
const token = () => tokenFor(service.idp, 'user_1');

test.each([
  ['an error', 500, 'application/json', '{"errors":[]}'],
  ['an HTML page', 200, 'text/html', '<html></html>'],
  ['null', 200, 'application/json', 'null'],
  ['an empty list', 200, 'application/json', '{"keys":[]}'],
])(
  'If the identity provider returns %s instead of its keys, a session gets a 503 or the error page, and other requests are served',
  async (_what, status, type, body) => {
    backendApi.handler = (_request, response) => {
      response.writeHead(status, { 'content-type': type }).end(body);
    };
    const [api, page, action, home, webhook] = await Promise.all([
      me(service.url, token()),
      send(`${service.url}/account`, { headers: { accept: 'text/html', ...cookie(token()) } }),
      send(`${service.url}/account`, { method: 'POST', body: '[]', headers: cookie(token()) }),
      send(service.url, { headers: { cookie: '__client_uat=0; __clerk_db_jwt=x' } }),
      deliver(service.url, userCreated('user_1')),
    ]);
    const unavailable = { status: 503, body: { message: 'Service Unavailable' } };
    expect(api).toMatchObject(unavailable);
    expect(action).toMatchObject(unavailable);
    for (const { headers } of [api, action]) expect(headers.get('retry-after')).toBe('1');
    expect(service.linesWith('"level":"error"')).toEqual([]);
    expect(page).toMatchObject({
      status: 503,
      body: expect.stringContaining('This page could not be shown'),
    });
    expect(page.body).not.toContain('Sign in');
    expect([home.status, webhook.status]).toEqual([200, 200]);
  },
);
