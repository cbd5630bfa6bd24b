import { z } from 'zod';
import { type ApiRequest, pageOf, type Routes } from '../http';
import { requireUser } from '../instance/accounts';
import type { OrganizationInvitation, User } from '../instance/data';
import { textsOf } from '../instance/identifiers';
import type { Instance } from '../instance/instance';
import {
  invitationResource,
  membershipResource,
  publicOrganizationData,
} from '../instance/organization-resources';
import { invitationsTo, membershipsOf } from '../instance/organizations';
import { invitationStatus, userResource } from '../instance/resources';
import { describeList, type Fields, optionalPage } from './lists';

/** The fields by which a list of users, or of rows that belong to users, is selected and sorted. */
export function userFields<Row>(userOf: (row: Row) => User): Fields<Row> {
  const fields: Fields<User> = {
    email_address: ({ emails }) => emails.map(({ value }) => value),
    phone_number: ({ phones }) => phones.map(({ value }) => value),
    web3_wallet: ({ wallets }) => wallets.map(({ value }) => value),
    web3wallet: ({ wallets }) => wallets.map(({ value }) => value),
    username: ({ username }) => [username],
    user_id: ({ id }) => [id],
    first_name: ({ firstName }) => [firstName],
    last_name: ({ lastName }) => [lastName],
    name: ({ firstName, lastName }) => [[firstName, lastName].filter(Boolean).join(' ')],
    query: textsOf,
    created_at: ({ createdAt }) => [createdAt],
    updated_at: ({ updatedAt }) => [updatedAt],
    last_sign_in_at: ({ lastSignInAt }) => [lastSignInAt],
    // The emulator records no activity but sign-ins.
    last_active_at: ({ lastSignInAt }) => [lastSignInAt],
  };
  return Object.fromEntries(
    Object.entries(fields).map(([name, read]) => [name, (row: Row) => read(userOf(row))]),
  );
}

/** The filters that lists of users and of memberships have in common. */
export const USER_FILTERS =
  'email_address phone_number username web3_wallet user_id query email_address_query phone_number_query ' +
  'username_query name_query last_active_at_before last_active_at_after created_at_before created_at_after';

const USER_ORDERS =
  'created_at updated_at email_address web3wallet first_name last_name phone_number username last_active_at last_sign_in_at';

/** Body of a webhook. In a user event, `id` is the id of the user. In a session event, it is the id of the session. */
const Event = z.object({ data: z.object({ id: z.string() }) });

/** Returns the Backend API routes that list users, and what belongs to a user. */
export function userListRoutes(instance: Instance): Routes<ApiRequest, unknown> {
  const { users } = instance.store;
  const connected = ({ externalAccounts }: User) => externalAccounts.filter((each) => !each.verification);
  const list = {
    fields: {
      ...userFields((user: User) => user),
      external_id: ({ externalId }: User) => [externalId],
      organization_id: (user: User) => membershipsOf(instance, user).map((each) => each.organizationId),
      banned: ({ banned }: User) => [String(banned)],
      provider: (user: User) => connected(user).map(({ provider }) => `oauth_${provider}`),
      provider_user_id: (user: User) => connected(user).map(({ email }) => email),
    },
    filters: `${USER_FILTERS} external_id organization_id banned last_active_at_since last_sign_in_at_before last_sign_in_at_after provider provider_user_id`,
  };
  const selectCounted = describeList({ ...list, others: '' });
  const selectUsers = describeList({ ...list, orders: USER_ORDERS, others: 'limit offset starting_after' });
  const selectInvitations = describeList({
    fields: { status: (row: OrganizationInvitation) => [invitationStatus(instance, row)] },
    filters: 'status',
  });
  return {
    'GET /v1/users': ({ url }) => {
      return pageOf(url, selectUsers(users.all(), url), userResource).data;
    },
    'GET /v1/users/count': ({ url }) => {
      const { length } = selectCounted(users.all(), url);
      return { object: 'total_count', total_count: length };
    },
    'GET /v1/users/:id/organization_memberships': ({ id, url }) => {
      const memberships = membershipsOf(instance, requireUser(instance, id));
      return pageOf(url, memberships, (membership) => membershipResource(instance, membership));
    },
    'GET /v1/users/:id/organization_invitations': ({ id, url }) => {
      const own = invitationsTo(instance, requireUser(instance, id));
      const format = (row: OrganizationInvitation) => ({
        ...invitationResource(instance, row),
        public_organization_data: publicOrganizationData(instance, row),
      });
      return pageOf(url, selectInvitations(own.reverse(), url), format);
    },
    // The page that plays a social provider issues no tokens.
    'GET /v1/users/:id/oauth_access_tokens/:otherId': ({ id, url }) => {
      requireUser(instance, id);
      return optionalPage(url, []);
    },
    // Returns the webhook deliveries of `user.*` events about a user. Clerk does not have this operation.
    'GET /v1/users/:id/deliveries': ({ id }) => {
      requireUser(instance, id);
      const dataOf = (body: string) => Event.safeParse(JSON.parse(body)).data?.data;
      return instance.webhooks.list().filter(({ body }) => dataOf(body)?.id === id);
    },
  };
}
