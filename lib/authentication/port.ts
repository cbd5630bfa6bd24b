/** What an identity provider says of a request: a verified user, or none. */
type AuthState =
  | { readonly isAuthenticated: true; readonly userId: string }
  | { readonly isAuthenticated: false };

/**
 * Verifies the credential of a request, independent of any web framework (contract 5.1). An adapter for a provider
 * implements it; a missing, forged or expired credential is `isAuthenticated: false`, never an error.
 */
export interface AuthenticationPort {
  authenticate(request: Request): Promise<AuthState>;
}
