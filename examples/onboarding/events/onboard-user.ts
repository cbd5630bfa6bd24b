import { log } from '#lib/base/log';
import type { HandleRow } from '#lib/tables/outbox';

/**
 * Replace the body with the call of another service, such as a welcome mail or a customer at a payment provider. Pass
 * `idempotencyKey` to that service, because a row is handled again if the process stops between the call and the deletion of the
 * row. Pass `signal` to the call, which ends it after 10 s. If this function throws, the row is handled again later, for
 * up to 23 h.
 */
export const onboardUser: HandleRow = async ({ kind }, _idempotencyKey, _signal) => {
  log.info({ kind }, 'onboarding');
};
