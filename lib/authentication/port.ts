/** Result of the verification: a verified user, or no user. */
type AuthState =
  | {
      readonly isAuthenticated: true;
      readonly userId: string;
      /** Returns the time when the credential was issued, in seconds since 1970. */
      readonly issuedAt: () => number | undefined;
    }
  | { readonly isAuthenticated: false };

/**
 * Verifies the credential of a request independently of a web framework (contract 5.1). An adapter implements this port for
 * one provider. The result for a missing, forged or expired credential is `isAuthenticated: false`, not an error.
 */
export interface AuthenticationPort {
  authenticate(request: Request): Promise<AuthState>;
}
