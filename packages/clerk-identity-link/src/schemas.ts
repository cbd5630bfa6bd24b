/** The authenticated user of a request. `userId` is the internal id. */
export interface AuthenticatedContext {
  readonly isAuthenticated: true;
  readonly userId: string;
  readonly identityProviderUserId: string;
}

/** Body of the 200 response to a webhook. */
export interface Acknowledgment {
  readonly received: true;
  readonly eventType: string;
}
