import { z } from 'zod';
import { parse, type Routes } from '../http';
import { requireFree, updateUser } from '../instance/accounts';
import { ApiError, requireFound } from '../instance/api-error';
import {
  deleteIdentifier,
  identificationResource,
  withIdentifier,
  withVerification,
} from '../instance/identifications';
import { isVerified, KINDS, type Kind } from '../instance/identifiers';
import type { Instance } from '../instance/instance';
import { checkCode, mailCode } from '../instance/mail';
import { type BrowserRequest, requireSignedIn } from './browser';
import { requireSetting } from './settings';

const Code = z.object({ code: z.string() });

/** Returns the routes with which a user adds an address or a phone number, verifies it by a code and removes it. */
export function identificationRoutes(instance: Instance, kind: Kind): Routes<BrowserRequest, unknown> {
  const { list, path, strategy, Value } = KINDS[kind];
  const { users } = instance.store;
  const own = (request: BrowserRequest) => requireSignedIn(instance, request).user;
  const find = (request: BrowserRequest) => {
    const user = own(request);
    const found = user[list].find(({ id }) => id === request.id);
    return { user, identifier: requireFound(found, `The ${kind.replace('_', ' ')}`) };
  };
  return {
    [`POST /v1/me/${path}`]: (request) => {
      requireSetting(instance, request.body, kind);
      const value = parse(z.looseObject({ [kind]: Value }), request.body)[kind];
      const { user, id } = withIdentifier(instance, own(request), kind, parse(Value, value));
      return identificationResource(updateUser(instance, user, {}), kind, id);
    },
    [`GET /v1/me/${path}/:id`]: (request) => identificationResource(own(request), kind, request.id),
    // Without effect, because there are no second factors.
    [`PATCH /v1/me/${path}/:id`]: (request) => identificationResource(own(request), kind, request.id),
    [`POST /v1/me/${path}/:id/prepare_verification`]: (request) => {
      const { user, identifier } = find(request);
      const verification = mailCode(
        instance,
        identifier.value,
        `new ${kind === 'phone_number' ? 'number' : 'address'}`,
        strategy,
      );
      const updated = users.put(withVerification(user, kind, identifier.id, verification));
      return identificationResource(updated, kind, identifier.id);
    },
    [`POST /v1/me/${path}/:id/attempt_verification`]: (request) => {
      const { user, identifier } = find(request);
      const { code } = parse(Code, request.body);
      requireFree(instance, identifier.value, kind);
      const verification = checkCode(instance, identifier.verification ?? null, code, (failed) =>
        users.put(withVerification(user, kind, identifier.id, failed)),
      );
      const verified = updateUser(instance, withVerification(user, kind, identifier.id, verification), {});
      return identificationResource(verified, kind, identifier.id);
    },
    [`DELETE /v1/me/${path}/:id`]: (request) => {
      const { user, identifier } = find(request);
      if ([...user.emails, ...user.phones].some((each) => each !== identifier && isVerified(each)))
        return deleteIdentifier(instance, user, kind, identifier.id);
      const message = 'You cannot delete your last identification.';
      throw new ApiError(400, 'last_identification_deletion_failed', message);
    },
  };
}
