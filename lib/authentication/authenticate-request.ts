import type { AuthenticatedContext } from '../core/link';
import type { Sessions } from '../core/ports';
import { link } from '../link';

/**
 * Returns the authenticated context of a request, as the guard does (docs/contract.md, 5.2, rules 2 and 3), in a program without
 * Next.js, such as a queue worker. Returns undefined without a verified user and for a forgotten user. Passes errors of
 * `sessions` and of the database through.
 */
export const authenticateRequest = async (
  request: Request,
  sessions: Sessions,
): Promise<AuthenticatedContext | undefined> =>
  link.resolveUser((await sessions.authenticate(request)) ?? { reason: 'no-credential' });
