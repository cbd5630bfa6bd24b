/** Result of verifying a credential: a verified user, or no user. */
type AuthState =
  | {
      readonly isAuthenticated: true;
      readonly userId: string;
      /** Time when the credential was issued, in seconds since 1970, or undefined if the time is unknown. */
      readonly issuedAt: number | undefined;
    }
  | { readonly isAuthenticated: false };

/**
 * Verifies the credential of a request independently of a web framework. An adapter implements this port for one identity
 * provider (docs/contract.md, 5.1). For a missing, forged or expired credential, the promise resolves with
 * `isAuthenticated: false`.
 */
export interface AuthenticationPort {
  authenticate(request: Request): Promise<AuthState>;
}
