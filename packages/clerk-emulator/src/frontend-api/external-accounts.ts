import { z } from 'zod';
import { parse, type Routes } from '../http';
import { updateUser } from '../instance/accounts';
import { requireFound } from '../instance/api-error';
import type { User } from '../instance/data';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { deletedResource } from '../instance/organizations';
import { externalAccountResource } from '../instance/resources';
import { socialVerification } from '../instance/social';
import { type BrowserRequest, requireOwnPage, requireSignedIn } from './browser';
import { requireProvider } from './settings';

const Connect = z.object({ strategy: z.string(), redirect_url: z.string() });

/** Returns the routes with which a user connects accounts of social providers. */
export function externalAccountRoutes(instance: Instance): Routes<BrowserRequest, unknown> {
  const find = (user: User, id: string) =>
    requireFound(
      user.externalAccounts.find((each) => each.id === id),
      'The external account',
    );
  return {
    'POST /v1/me/external_accounts': (request) => {
      const { user } = requireSignedIn(instance, request);
      const { strategy, redirect_url } = parse(Connect, request.body);
      const provider = requireProvider(instance, strategy);
      const returnUrl = requireOwnPage(instance, request, redirect_url).href;
      const id = newId('eac');
      const verification = socialVerification(instance, id, {
        provider,
        origin: request.url.origin,
        returnUrl,
      });
      const account = { id, provider, email: '', firstName: null, lastName: null, verification };
      const externalAccounts = [...user.externalAccounts, account];
      return externalAccountResource(updateUser(instance, user, { externalAccounts }), account);
    },
    'DELETE /v1/me/external_accounts/:id': (request) => {
      const { user } = requireSignedIn(instance, request);
      const removed = find(user, request.id);
      const externalAccounts = user.externalAccounts.filter((each) => each !== removed);
      updateUser(instance, user, { externalAccounts });
      return deletedResource(removed.id, 'external_account');
    },
  };
}
