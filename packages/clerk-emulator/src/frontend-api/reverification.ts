import { parse, type Routes, wrapHandlers } from '../http';
import { requireUser } from '../instance/accounts';
import { ApiError } from '../instance/api-error';
import { firstFactors } from '../instance/attempt-resources';
import type { Session, User, Verification } from '../instance/data';
import type { Instance } from '../instance/instance';
import { factorAge } from '../instance/issued-tokens';
import { CodeRequest, checkCode, FirstFactor, mailCodeToUser, unsent } from '../instance/mail';
import { verifyPassword } from '../instance/passwords';
import { verificationResource } from '../instance/resources';
import { type BrowserRequest, requireOwnSession } from './browser';
import { currentSession } from './session';

const UNSENT = unsent('email_code');

type Step = (body: unknown, user: User, session: Session) => Verification;

/** Returns the routes that verify a signed-in user again, by password or by mailed code. */
export function reverificationRoutes(instance: Instance): Routes<BrowserRequest, unknown> {
  const { sessions } = instance.store;
  const steps: Readonly<Record<string, Step>> = {
    'POST /v1/client/sessions/:id/verify': () => UNSENT,
    'POST /v1/client/sessions/:id/verify/prepare_first_factor': (body, user) => {
      return mailCodeToUser(instance, user, 'reverification', parse(CodeRequest, body));
    },
    'POST /v1/client/sessions/:id/verify/attempt_first_factor': (body, user, session) => {
      const input = parse(FirstFactor, body);
      if (input.strategy === 'password') return verifyPassword(instance, user, input.password);
      const save = (reverification: Verification) => sessions.put({ ...session, reverification });
      return checkCode(instance, session.reverification ?? null, input.code, save);
    },
  };
  return wrapHandlers(steps, (step) => (request) => {
    const session = requireOwnSession(instance, request, request.id);
    const user = requireUser(instance, session.userId);
    const verification = step(request.body, user, session);
    const isComplete = verification.status === 'verified';
    const saved = sessions.put({
      ...session,
      reverification: isComplete ? undefined : verification,
      ...(isComplete && { verifiedAt: instance.clock.now() }),
    });
    return {
      object: 'session_reverification',
      // Users have no second factor. As at Clerk, each level then is that of the first factor.
      level: 'first_factor',
      status: isComplete ? 'complete' : 'needs_first_factor',
      supported_first_factors: firstFactors(user),
      supported_second_factors: null,
      first_factor_verification: verification === UNSENT ? null : verificationResource(verification),
      second_factor_verification: null,
      session: currentSession(instance, saved, request.browser),
    };
  });
}

/** Operations that need a recent verification, if the setting `reverification` is on. */
const SENSITIVE =
  /^(POST|DELETE) \/v1\/me\/(email_addresses|phone_numbers|external_accounts)(\/:id)?$|change_password$|^DELETE \/v1\/me$/;
const MAX_MINUTES = 10;

/** Throws Clerk's 403 if a sensitive operation needs a verification of the user. */
export function requireReverification(instance: Instance, operation: string, session: Session): void {
  if (!instance.settings.reverification || !SENSITIVE.test(operation)) return;
  const [minutes = 0] = factorAge(session, instance.clock.now());
  if (minutes < MAX_MINUTES) return;
  const message = 'You need to provide additional verification to perform this operation.';
  throw new ApiError(403, 'session_reverification_required', message);
}
