import { z } from 'zod';
import type { ProtectCheck } from './data';
import { ApiError } from './error';
import { newId } from './ids';
import type { Instance } from './instance';

const CHECK_LIFE = 10 * 60 * 1000;

/**
 * Request that completes a protect check. In a protect check (Clerk Protect), the browser runs a script and sends the token
 * that the script returns. The emulator accepts any token.
 */
export const Proof = z.object({ proof_token: z.string().min(1) });

/** Returns the check of a new sign-in or sign-up, or null if the instance does not use Clerk Protect. */
export function startProtectCheck({ protectCheckUrl, clock }: Instance): ProtectCheck | null {
  if (protectCheckUrl === undefined) return null;
  return { token: newId('protect'), scriptUrl: protectCheckUrl, expireAt: clock.now() + CHECK_LIFE };
}

/** Throws Clerk's error if the browser has already passed the check, or if there is no check. */
export function requireOpenCheck(check: ProtectCheck | null): void {
  if (check !== null) return;
  throw new ApiError(400, 'protect_check_already_resolved', 'This check is already resolved.');
}

/** Throws Clerk's error if there is a check that the browser has not passed yet. */
export function requirePassedCheck(check: ProtectCheck | null): void {
  if (check === null) return;
  throw new ApiError(
    403,
    'protect_check_required',
    'A check must be passed before this attempt can continue.',
  );
}
