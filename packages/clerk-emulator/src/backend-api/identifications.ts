import { z } from 'zod';
import { type ApiRequest, parse, type Routes } from '../http';
import { requireUser, updateUser } from '../instance/accounts';
import { requireFound } from '../instance/api-error';
import type { User } from '../instance/data';
import {
  deleteIdentifier,
  identificationResource,
  withIdentifier,
  withVerification,
} from '../instance/identifications';
import { KINDS, type Kind, withPrimary } from '../instance/identifiers';
import type { Instance } from '../instance/instance';
import { unsent } from '../instance/mail';

const Change = z.strictObject({
  verified: z.boolean().nullish(),
  primary: z.boolean().nullish(),
  // Without effect, because the emulator does not notify users and has no second factors.
  notify_primary_email_address_changed: z.boolean().nullish(),
  reserved_for_second_factor: z.boolean().nullish(),
});

/** Returns the Backend API routes for the e-mail addresses or the phone numbers of users. */
export function identificationRoutes(instance: Instance, kind: Kind): Routes<ApiRequest, unknown> {
  const { list, path, strategy, Value } = KINDS[kind];
  const New = z.looseObject({ user_id: z.string(), [kind]: Value });
  const find = (id: string) => {
    const user = instance.store.users.find((each) => each[list].some((identifier) => identifier.id === id));
    return requireFound(user, `The ${kind.replace('_', ' ')} ${id}`);
  };
  const change = (before: User, id: string, { verified, primary }: z.output<typeof Change>) => {
    const verification = verified ? undefined : unsent(strategy);
    const user = typeof verified === 'boolean' ? withVerification(before, kind, id, verification) : before;
    const identifiers = primary ? withPrimary(user[list], id, 'primary') : user[list];
    return identificationResource(updateUser(instance, user, { [list]: identifiers }), kind, id);
  };
  return {
    [`POST /v1/${path}`]: ({ body }) => {
      const { user_id, [kind]: value, ...input } = body;
      const owner = requireUser(instance, parse(z.string(), parse(New, body)['user_id']));
      const { user, id } = withIdentifier(instance, owner, kind, parse(Value, value));
      return change(user, id, parse(Change, input));
    },
    [`GET /v1/${path}/:id`]: ({ id }) => identificationResource(find(id), kind, id),
    [`PATCH /v1/${path}/:id`]: ({ id, body }) => change(find(id), id, parse(Change, body)),
    [`DELETE /v1/${path}/:id`]: ({ id }) => deleteIdentifier(instance, find(id), kind, id),
  };
}
