import { z } from 'zod';
import { parse, type Routes } from '../http';
import { requireFree, updateUser } from '../instance/accounts';
import { ApiError, requireFound } from '../instance/api-error';
import type { Verification } from '../instance/data';
import {
  deleteIdentifier,
  identificationResource,
  withIdentifier,
  withVerification,
} from '../instance/identifications';
import { isVerified, KINDS, type Kind } from '../instance/identifiers';
import type { Instance } from '../instance/instance';
import { checkCode, mailCode } from '../instance/mail';
import type { UserRequest } from './browser';
import { requireSettings } from './sign-up';

const Code = z.object({ code: z.string() });

/** Returns the routes with which a user adds an address or a phone number, verifies it by a code and removes it. */
export function identificationRoutes(instance: Instance, kind: Kind): Routes<UserRequest, unknown> {
  const { list, path, strategy, Value } = KINDS[kind];
  const { users } = instance.store;
  const find = ({ user, id }: UserRequest) =>
    requireFound(
      user[list].find((each) => each.id === id),
      `The ${kind.replace('_', ' ')}`,
    );
  const verified = ({ user, id }: UserRequest, verification: Verification) =>
    withVerification(user, kind, id, verification);
  return {
    [`POST /v1/me/${path}`]: ({ user, body }) => {
      requireSettings(instance, body);
      const [value = ''] = Object.values(parse(z.object({ [kind]: Value }), body));
      const added = withIdentifier(instance, user, kind, value);
      return identificationResource(updateUser(instance, added.user, {}), kind, added.id);
    },
    [`GET /v1/me/${path}/:id`]: ({ user, id }) => identificationResource(user, kind, id),
    // `reserved_for_second_factor` is without effect here, too, because there are no second factors.
    [`PATCH /v1/me/${path}/:id`]: ({ user, id }) => identificationResource(user, kind, id),
    [`POST /v1/me/${path}/:id/prepare_verification`]: (request) => {
      const purpose = kind === 'phone_number' ? 'new number' : 'new address';
      const verification = mailCode(instance, find(request).value, purpose, strategy);
      return identificationResource(users.put(verified(request, verification)), kind, request.id);
    },
    [`POST /v1/me/${path}/:id/attempt_verification`]: (request) => {
      const { value, verification = null } = find(request);
      const { code } = parse(Code, request.body);
      requireFree(instance, value, kind);
      const save = (failed: Verification) => users.put(verified(request, failed));
      const checked = checkCode(instance, verification, code, save);
      return identificationResource(updateUser(instance, verified(request, checked), {}), kind, request.id);
    },
    [`DELETE /v1/me/${path}/:id`]: (request) => {
      const { user, id } = request;
      find(request);
      if ([...user.emails, ...user.phones].some((each) => each.id !== id && isVerified(each)))
        return deleteIdentifier(instance, user, kind, id);
      const message = 'You cannot delete your last identification.';
      throw new ApiError(400, 'last_identification_deletion_failed', message);
    },
  };
}
