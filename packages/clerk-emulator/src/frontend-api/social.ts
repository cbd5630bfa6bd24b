import { Hono } from 'hono';
import { html } from 'hono/html';
import { z } from 'zod';
import { parse, type Routes } from '../http';
import { updateUser } from '../instance/accounts';
import { notFound } from '../instance/api-error';
import type { ExternalAccount, Verification } from '../instance/data';
import { EmailAddress } from '../instance/identifiers';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { deletedResource } from '../instance/organizations';
import { externalAccountResource } from '../instance/resources';
import { ownerOf, type SocialAccount } from '../instance/social';
import type { UserRequest } from './browser';
import { enterSignIn, socialVerification } from './sign-in';
import { enterSignUp } from './sign-up';

const Choice = z.object({
  email: EmailAddress,
  first_name: z.string().default(''),
  last_name: z.string().default(''),
});

/** Serves the page that plays a social provider. The attempt in the query is a secret, so a page of another site cannot use it. */
export function socialProvider(instance: Instance): Hono {
  return new Hono()
    .get('/social/:provider', ({ req, html: respond, header }) => {
      const provider = req.param('provider');
      requireAttempt(instance, req.query('attempt'), provider);
      header('content-security-policy', "frame-ancestors 'none'");
      return respond(page(instance, provider));
    })
    .post('/social/:provider', async ({ req, redirect }) => {
      const provider = req.param('provider');
      const form = await req.parseBody();
      const { verification, save, enter } = requireAttempt(instance, req.query('attempt'), provider);
      if ('deny' in form) save({ ...verification, error: DENIED });
      else {
        const { email, first_name, last_name } = parse(Choice, form);
        enter({ provider, email, firstName: first_name || null, lastName: last_name || null });
      }
      return redirect(verification.social?.returnUrl ?? '/', 303);
    });
}

const DENIED = {
  code: 'oauth_access_denied',
  message: 'Access denied',
  long_message: 'You did not grant access to your account.',
};

const CLAIMED = {
  code: 'oauth_identification_claimed',
  message: 'Identification claimed by another user',
  long_message: 'The email address associated with this OAuth account is already claimed by another user.',
};

/** A sign-in, a sign-up or an external account that waits for a social provider. */
interface Attempt {
  readonly verification: Verification | null | undefined;
  readonly save: (verification: Verification) => void;
  /** Continues with the account that the provider reports. */
  readonly enter: (account: SocialAccount) => void;
}

/** Returns an attempt with its open verification by a provider. Throws a 404 if there is none. */
function requireAttempt(instance: Instance, id = '', provider = '') {
  const attempt = findAttempt(instance, id);
  const { verification } = attempt ?? {};
  const isOpen = verification?.status === 'unverified' && verification.expireAt > instance.clock.now();
  if (attempt && isOpen && verification.strategy === `oauth_${provider}`) return { ...attempt, verification };
  throw notFound('The attempt');
}

function findAttempt(instance: Instance, id: string): Attempt | undefined {
  const { signIns, signUps, users } = instance.store;
  const signIn = signIns.get(id);
  if (signIn) {
    const save = (verification: Verification) => signIns.put({ ...signIn, verification });
    const enter = (account: SocialAccount) => enterSignIn(instance, signIn, account);
    return { verification: signIn.verification, save, enter };
  }
  const signUp = signUps.get(id);
  if (signUp) {
    const save = (externalVerification: Verification) => signUps.put({ ...signUp, externalVerification });
    const enter = (account: SocialAccount) => enterSignUp(instance, signUp, account);
    return { verification: signUp.externalVerification, save, enter };
  }
  const user = users.find(({ externalAccounts }) => externalAccounts.some((each) => each.id === id));
  const account = user?.externalAccounts.find((each) => each.id === id);
  if (user === undefined || account === undefined) return undefined;
  const others = user.externalAccounts.filter((each) => each !== account);
  const replace = (changed: ExternalAccount) =>
    updateUser(instance, user, { externalAccounts: [...others, changed] });
  const save = (verification: Verification) => replace({ ...account, verification });
  const enter = (found: SocialAccount) => {
    const isClaimed = (ownerOf(instance, found) ?? user).id !== user.id;
    if (isClaimed && account.verification) save({ ...account.verification, error: CLAIMED });
    else replace({ id, ...found });
  };
  return { verification: account.verification, save, enter };
}

function page({ store }: Instance, provider: string) {
  const known = store.users
    .all()
    .flatMap(({ externalAccounts }) => externalAccounts)
    .filter((account) => account.provider === provider && account.verification === undefined);
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>${provider}</title>
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <link rel="icon" href="data:," />
    <style>
      body { max-width: 24rem; margin: 10vh auto; padding: 0 1rem; font: 1rem system-ui; }
      form { display: grid; gap: 0.75rem; margin: 1rem 0; }
      input, button { padding: 0.5rem; font: inherit; }
    </style>
  </head>
  <body>
    <h1>Sign in with ${provider}</h1>
    <p>The emulator plays this provider. Choose any account.</p>
    <form method="post">${known.map(({ email }) => html`<button name="email" value="${email}">${email}</button>`)}</form>
    <form method="post">
      <input name="email" type="email" required placeholder="E-mail" aria-label="E-mail" />
      <input name="first_name" placeholder="First name" aria-label="First name" />
      <input name="last_name" placeholder="Last name" aria-label="Last name" />
      <button>Continue</button>
    </form>
    <form method="post"><button name="deny" value="1">Deny</button></form>
  </body>
</html>`;
}

/** Returns the routes with which a user connects accounts of social providers. */
export function externalAccountRoutes(instance: Instance): Routes<UserRequest, unknown> {
  return {
    // Without effect: `additional_scope`. The emulator has no tokens of a provider.
    'POST /v1/me/external_accounts': (request) => {
      const { user } = request;
      const id = newId('eac');
      const verification = socialVerification(instance, request, id);
      const provider = verification.strategy.replace('oauth_', '');
      const account = { id, provider, email: '', firstName: null, lastName: null, verification };
      const others = user.externalAccounts.filter((each) => each.provider !== provider || !each.verification);
      const externalAccounts = [...others, account];
      return externalAccountResource(updateUser(instance, user, { externalAccounts }), account);
    },
    'DELETE /v1/me/external_accounts/:id': ({ user, id }) => {
      const externalAccounts = user.externalAccounts.filter((each) => each.id !== id);
      if (externalAccounts.length === user.externalAccounts.length) throw notFound('The external account');
      updateUser(instance, user, { externalAccounts });
      return deletedResource(id, 'external_account');
    },
  };
}
