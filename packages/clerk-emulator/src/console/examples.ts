import { z } from 'zod';
import { createSession, createUser, deleteUser, updateUser } from '../instance/accounts';
import { requireFound } from '../instance/api-error';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import {
  createOrganization,
  deleteOrganization,
  membersOf,
  updateMember,
  updateOrganization,
} from '../instance/organizations';
import { dataSchema } from '../instance/table';
import { startWebhooks } from '../instance/webhooks';

const Event = z.object({ data: z.record(z.string(), z.unknown()) });

/** Returns the data of an event in an instance with empty tables. Throws a 404 for a type without an example. */
export function exampleEventData(real: Instance, type: string): Record<string, unknown> {
  const { version, signingKeyPem } = real.store;
  const store = { ...real.store, ...dataSchema(() => {}).parse({ version, signingKeyPem }) };
  const webhooks = startWebhooks({
    store,
    clock: real.clock,
    endpoint: undefined,
    retryScale: 1,
    instanceId: real.signingKey.kid,
  });
  const instance = { ...real, store, webhooks };
  const user = createUser(instance, {
    emails: ['example@example.com'],
    firstName: 'Example',
    lastName: 'Example',
  });
  createSession(instance, user, newId('client'));
  updateUser(instance, user, {});
  const organization = createOrganization(instance, { name: 'Example', creator: user });
  updateOrganization(instance, organization, {});
  for (const membership of membersOf(instance, organization)) updateMember(instance, membership, {});
  deleteOrganization(instance, organization);
  deleteUser(instance, user);
  const event = webhooks.list().find((each) => each.type === type);
  return Event.parse(JSON.parse(requireFound(event, `An example of ${type}`).body)).data;
}
