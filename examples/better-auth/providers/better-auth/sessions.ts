import type { Provider } from '#lib/providers';
import { auth } from './auth';

/** A session cookie of Better Auth, or its value as a bearer token, which has fewer parts than a JWT. */
const COOKIE = /(?:^|;\s*)(?:__Secure-)?better-auth\.session_token=/;
const BEARER = /^Bearer +[^.\s]+\.[^.\s]+ *$/i;

/** Returns the role as Clerk names it, so that a route of `guardTenant` accepts the sessions of both. A member can have several. */
const roleOf = (roles: string): string => (/\b(?:owner|admin)\b/.test(roles) ? 'org:admin' : 'org:member');

/**
 * Sessions of Better Auth. Reads the session from the database, so that a revoked session ends at once, and does not extend it,
 * because a new cookie would not reach the browser.
 */
export const betterAuthSessions: Provider = {
  name: 'better-auth',
  async authenticate({ headers }) {
    const isOwn = COOKIE.test(headers.get('cookie') ?? '') || BEARER.test(headers.get('authorization') ?? '');
    if (!isOwn) return undefined;
    const { api, $context } = auth();
    const query = { disableCookieCache: true, disableRefresh: true };
    const found = await api.getSession({ headers, query });
    if (!found) return { reason: 'signed-out' };
    const { userId, activeOrganizationId: id } = found.session;
    // A member that was removed keeps the active organization in the session.
    const where = [
      { field: 'userId', value: userId },
      { field: 'organizationId', value: id ?? '' },
    ];
    const member = id
      ? await (await $context).adapter.findOne<{ role: string }>({ model: 'member', where })
      : null;
    return {
      user: userId,
      // The database has just confirmed that the user exists.
      issuedAt: Math.floor(Date.now() / 1_000),
      organization: id && member ? { id, role: roleOf(member.role) } : undefined,
    };
  },
  async has(kind, ids) {
    const { adapter } = await auth().$context;
    const where = [{ field: 'id', operator: 'in' as const, value: [...ids] }];
    const model = kind === 'user' ? 'user' : 'organization';
    const rows = await adapter.findMany<{ id: string }>({ model, where, limit: ids.length });
    return rows.map(({ id }) => id);
  },
};
