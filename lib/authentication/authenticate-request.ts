import type { AuthenticatedContext } from '../api/schemas';
import { resolveUser } from '../guard';
import type { Verdict } from '../idp/verdict';

/**
 * Verifies the credential of a request independently of a web framework. An adapter implements this port for one identity
 * provider (docs/contract.md, 5.1). For a missing, forged or expired credential, the verdict has no user.
 */
export interface AuthenticationPort {
  authenticate(request: Request): Promise<Verdict>;
}

/**
 * Returns the authenticated context of a request, as the guard does (docs/contract.md, 5.2, rules 2 and 3), in a program without
 * Next.js, such as a queue worker. Returns undefined without a verified user and for a forgotten user. Passes errors of `port`
 * and of the database through.
 */
export const authenticateRequest = async (
  request: Request,
  port: AuthenticationPort,
): Promise<AuthenticatedContext | undefined> => resolveUser(await port.authenticate(request));
