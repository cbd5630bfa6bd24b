import type { Clock } from './clock';
import { newId } from './ids';

/**
 * Settings of the handshakes of an instance. A handshake passes the session cookies to the application's server
 * (../frontend-api/handshake.ts). Clerk's handshakes have differed in these settings, so an application should work with each
 * combination.
 */
export interface HandshakeSettings {
  /** Content of the redirect: a nonce if the SDK requests one, or always a signed token with the cookies, as earlier. */
  readonly format: 'nonce' | 'token';
  /**
   * Whether a session token from a handshake has the claim `azp`, the origin for which the token was issued. Clerk takes the
   * claim from the `Origin` header. A handshake is a navigation, which has no such header, so an instance of Clerk may omit the
   * claim (https://github.com/clerk/javascript/issues/8231).
   */
  readonly azp: boolean;
}

/** Lifetime of a nonce. The application's server must exchange it for the cookies within this time. */
export const HANDSHAKE_SECONDS = 60;

/** Returns the handshake settings of an instance, and a store of the cookies that the application's server gets for a nonce. */
export function handshakes(clock: Clock, initial: Partial<HandshakeSettings> = {}) {
  let settings: HandshakeSettings = { format: 'nonce', azp: true, ...initial };
  const pending = new Map<string, { readonly cookies: readonly string[]; readonly expireAt: number }>();
  return {
    get settings() {
      return settings;
    },
    set(changes: Partial<HandshakeSettings>) {
      settings = { ...settings, ...changes };
    },
    /** Stores the cookies of a handshake and returns a new nonce for them. */
    store(cookies: readonly string[]): string {
      const now = clock.now();
      for (const [nonce, { expireAt }] of pending) if (expireAt <= now) pending.delete(nonce);
      const nonce = newId('nonce');
      pending.set(nonce, { cookies, expireAt: now + HANDSHAKE_SECONDS * 1000 });
      return nonce;
    },
    /** Returns the cookies of a nonce and removes the nonce. Returns undefined for an unknown, used or expired nonce. */
    take(nonce: string): readonly string[] | undefined {
      const handshake = pending.get(nonce);
      pending.delete(nonce);
      return handshake && handshake.expireAt > clock.now() ? handshake.cookies : undefined;
    },
  };
}
