import { z } from 'zod';
import { parse, type Routes } from '../http';
import { requireUser } from '../instance/accounts';
import type { Session, Verification } from '../instance/data';
import { ApiError } from '../instance/error';
import type { Instance } from '../instance/instance';
import { checkCode, mailCodeToUser, UNSENT } from '../instance/mail';
import { verifyPassword } from '../instance/passwords';
import { firstFactors, verificationResource } from '../instance/resources';
import { type BrowserRequest, requireOwnSession, requireSignedIn } from './browser';
import { currentSession } from './session';

const STRICT_MILLISECONDS = 10 * 60_000;

/** Operations that need a recent verification of the user if the setting `reverification` is set. */
const SENSITIVE: readonly string[] = [
  'DELETE /v1/me',
  'POST /v1/me/change_password',
  'POST /v1/me/email_addresses',
  'DELETE /v1/me/email_addresses/:id',
  'POST /v1/me/sessions/:id/revoke',
];

const Start = z.object({ level: z.enum(['first_factor', 'second_factor', 'multi_factor']) });
const Prepare = z.object({ strategy: z.literal('email_code'), email_address_id: z.string().optional() });
const Attempt = z.discriminatedUnion('strategy', [
  z.object({ strategy: z.literal('password'), password: z.string() }),
  z.object({ strategy: z.literal('email_code'), code: z.string() }),
]);

/** Throws Clerk's 403 if the operation is sensitive and the user was not verified in the last ten minutes. */
export function requireRecentVerification(instance: Instance, request: BrowserRequest, route: string): void {
  if (!instance.settings.reverification || !SENSITIVE.includes(route)) return;
  const { session } = requireSignedIn(instance, request);
  const age = instance.clock.now() - (session.verifiedAt ?? session.createdAt);
  // As at Clerk, a verification that the user has begun must be completed.
  if (age < STRICT_MILLISECONDS && session.reverification === undefined) return;
  throw new ApiError(403, 'session_reverification_required', 'You need to verify again to do this.');
}

/** Returns the routes that verify a signed-in user again, by password or by mailed code. */
export function reverificationRoutes(instance: Instance): Routes<BrowserRequest, unknown> {
  const find = (request: BrowserRequest) => {
    const session = requireOwnSession(instance, request, request.id);
    return { session, user: requireUser(instance, session.userId) };
  };
  const save = ({ browser }: BrowserRequest, session: Session, verification: Verification) => {
    const isComplete = verification.status === 'verified';
    const saved = instance.store.sessions.put({
      ...session,
      reverification: isComplete ? undefined : verification,
      ...(isComplete && { verifiedAt: instance.clock.now() }),
    });
    return {
      object: 'session_reverification',
      // Users have no second factor. As at Clerk, each level then is that of the first factor.
      level: 'first_factor',
      status: isComplete ? 'complete' : 'needs_first_factor',
      supported_first_factors: firstFactors(requireUser(instance, session.userId)),
      supported_second_factors: null,
      first_factor_verification: verification === UNSENT ? null : verificationResource(verification),
      second_factor_verification: null,
      session: currentSession(instance, saved, browser),
    };
  };
  return {
    'POST /v1/client/sessions/:id/verify': (request) => {
      parse(Start, request.body);
      return save(request, find(request).session, UNSENT);
    },
    'POST /v1/client/sessions/:id/verify/prepare_first_factor': (request) => {
      const { session, user } = find(request);
      const { strategy, email_address_id: id } = parse(Prepare, request.body);
      return save(request, session, mailCodeToUser(instance, user, id, 'reverification', strategy));
    },
    'POST /v1/client/sessions/:id/verify/attempt_first_factor': (request) => {
      const { session, user } = find(request);
      const input = parse(Attempt, request.body);
      if (input.strategy === 'password')
        return save(request, session, verifyPassword(instance, user, input.password));
      const sent = session.reverification ?? null;
      const verification = checkCode(instance, sent, input.code, (failed) => save(request, session, failed));
      return save(request, session, verification);
    },
  };
}
