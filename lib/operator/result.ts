/** What a command did for one user or organization. With a `reason`, the user needs a decision of the operator. */
export interface LinkResult {
  /** The id at the identity provider. */
  readonly id: string;
  readonly outcome: string;
  readonly reason?: string;
}
