import { expect, test } from 'vitest';
import type { IdentityProviderOptions } from '../../dev/idp/server';
import { developmentBrowser } from '../harness/development-browser';
import { startProvider } from '../harness/identity-provider';
import { stopAfterTest } from '../vitest/stop-after-all';

const EMAIL = 'ada@example.com';
const PASSWORD = 'correct horse';

async function start(options: Partial<IdentityProviderOptions> = {}) {
  const provider = stopAfterTest(await startProvider(options));
  const user = provider.createUser({ email: EMAIL, password: PASSWORD });
  const browser = await developmentBrowser(provider);
  /** The code that was mailed last. */
  const mailedCode = () => provider.store.mails.all().at(-1)?.code ?? '';
  return { provider, user, browser, mailedCode };
}

test('An instance with client trust asks for a mailed code in a browser that is new to the user, and only once', async () => {
  const { provider, user, browser, mailedCode } = await start({ clientTrust: true });
  const begun = await browser.signIn(EMAIL, { password: PASSWORD });
  expect(begun.body).toMatchObject({
    response: {
      status: 'needs_client_trust',
      client_trust_state: 'new',
      supported_second_factors: [{ strategy: 'email_code', safe_identifier: EMAIL }],
      first_factor_verification: { status: 'verified' },
      created_session_id: null,
    },
    client: { sessions: [] },
  });
  const path = `/v1/client/sign_ins/${begun.response?.id}`;
  await browser.call('POST', `${path}/prepare_second_factor`, { strategy: 'email_code' });
  expect(provider.store.mails.all().at(-1)).toMatchObject({ to: EMAIL, purpose: 'new device' });
  const code = mailedCode();
  const attempt = (text: string) =>
    browser.call('POST', `${path}/attempt_second_factor`, { strategy: 'email_code', code: text });
  expect((await attempt(code === '000000' ? '000001' : '000000')).code).toBe('form_code_incorrect');
  const done = await attempt(code);
  expect(done.body).toMatchObject({
    response: { status: 'complete', second_factor_verification: { status: 'verified' } },
  });
  expect(provider.store.sessions.get(done.response?.created_session_id ?? '')?.userId).toBe(user.id);

  await browser.call('DELETE', '/v1/client/sessions');
  const again = await browser.signIn(EMAIL, { password: PASSWORD });
  expect(again.body).toMatchObject({ response: { status: 'complete', client_trust_state: 'known' } });
});

test('An instance with client trust accepts a mailed code as the only factor', async () => {
  const { browser, mailedCode } = await start({ clientTrust: true });
  const begun = await browser.signIn(EMAIL, { strategy: 'email_code' });
  const path = `/v1/client/sign_ins/${begun.response?.id}`;
  const done = await browser.call('POST', `${path}/attempt_first_factor`, {
    strategy: 'email_code',
    code: mailedCode(),
  });
  expect(done.response?.status).toBe('complete');
});

test('A sign-in that needs no second factor rejects one', async () => {
  const { browser } = await start();
  const begun = await browser.signIn(EMAIL);
  const path = `/v1/client/sign_ins/${begun.response?.id}/prepare_second_factor`;
  const rejected = await browser.call('POST', path, { strategy: 'email_code' });
  expect(rejected).toMatchObject({ status: 400, code: 'resource_forbidden' });
});
