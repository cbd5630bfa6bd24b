import { z } from 'zod';
import { parse, type Routes, wrapHandlers } from '../http';
import { requireUser } from '../instance/accounts';
import type { Session, User, Verification } from '../instance/data';
import { ApiError } from '../instance/error';
import type { Instance } from '../instance/instance';
import { checkCode, mailCode } from '../instance/mail';
import { reverificationResource } from '../instance/resources';
import { type BrowserRequest, requireOwnSession } from './browser';
import { verifyPassword } from './password-factor';
import { currentSession } from './session';

const Start = z.object({ level: z.enum(['first_factor', 'second_factor', 'multi_factor']) });
const Prepare = z.object({ strategy: z.literal('email_code') });
const Attempt = z.discriminatedUnion('strategy', [
  z.object({ strategy: z.literal('password'), password: z.string() }),
  z.object({ strategy: z.literal('email_code'), code: z.string() }),
]);

/**
 * Returns the routes of a reverification. A signed-in user proves the first factor (password or mailed code) again.
 * The emulated users have no second factor. For such users, Clerk requires only the first factor at every level.
 */
export function reverificationRoutes(instance: Instance): Routes<BrowserRequest, Record<string, unknown>> {
  const { sessions } = instance.store;
  const save = (session: Session, verification: Verification | null) =>
    sessions.put({ ...session, reverification: { verification } });
  const routes: Routes<BrowserRequest, Session> = {
    'POST /v1/client/sessions/:id/verify': (request) => {
      const session = requireOwnSession(instance, request, request.id);
      parse(Start, request.body);
      return save(session, null);
    },
    'POST /v1/client/sessions/:id/verify/prepare_first_factor': (request) => {
      const { session, user } = startedReverification(instance, request);
      const { strategy } = parse(Prepare, request.body);
      return save(session, mailCode(instance, user.email, 'reverification', strategy));
    },
    'POST /v1/client/sessions/:id/verify/attempt_first_factor': (request) => {
      const { session, user, verification } = startedReverification(instance, request);
      const input = parse(Attempt, request.body);
      const verified =
        input.strategy === 'password'
          ? verifyPassword(instance, user, input.password)
          : checkCode(instance, verification, input.code, (failed) => save(session, failed));
      return save({ ...session, reverifiedAt: instance.clock.now() }, verified);
    },
  };
  return wrapHandlers(routes, (handler) => (request) => {
    const session = handler(request);
    return reverificationResource(session, {
      user: requireUser(instance, session.userId),
      session: currentSession(instance, session, request.browser),
    });
  });
}

/**
 * Returns the session, the user of the session and the verification of the first factor. The verification is null until a code
 * is mailed. Throws a 400 if the session has no reverification, or if its reverification is complete.
 */
function startedReverification(
  instance: Instance,
  request: BrowserRequest,
): { session: Session; user: User; verification: Verification | null } {
  const session = requireOwnSession(instance, request, request.id);
  if (session.reverification === null || session.reverification.verification?.status === 'verified') {
    throw new ApiError(400, 'resource_forbidden', 'This session has no open reverification.');
  }
  const { verification } = session.reverification;
  return { session, user: requireUser(instance, session.userId), verification };
}
