import { HttpError } from './error';
import type { Cache, CacheRead, Observer, Store } from './ports';
import { createRegister, type Register } from './register';
import { createResolve, type Resolve } from './resolve';
import type { Verdict } from './verdict';

/** The authenticated user of a request (docs/contract.md, 2.2). `userId` is the internal id. */
export interface AuthenticatedContext {
  readonly isAuthenticated: true;
  readonly userId: string;
  readonly identityProviderUserId: string;
}

/** The authenticated user of a request, and the organization that is active in the session: the tenant. */
export interface TenantContext extends AuthenticatedContext {
  /** The internal id of the organization. */
  readonly tenantId: string;
  readonly identityProviderOrganizationId: string;
  /** The role of the user in the organization when the session token was issued, such as `org:admin`. */
  readonly organizationRole: string;
}

/**
 * Returns both ids of the user of a verdict. Returns undefined without a verified session, and for a forgotten user, whom an
 * operator deleted after the session token was issued. Throws an HttpError 503 if the session could not be checked. Implements
 * docs/contract.md, 5.2, rules 2 to 4.
 */
type ResolveUser = (verdict: Verdict) => Promise<AuthenticatedContext | undefined>;

/**
 * Returns the user of a verdict and, as `tenant`, the user's context in the active organization. Creates the tenant of a new
 * organization. `tenant` is undefined without a user or an organization, and for a forgotten or deleted organization.
 * `resolve` returns the user.
 */
type ResolveTenant = (
  verdict: Verdict,
  resolve?: ResolveUser,
) => Promise<{
  readonly user?: AuthenticatedContext | undefined;
  readonly tenant?: TenantContext | undefined;
}>;

/** A link over a store. Guards, pages, actions, webhooks and routes are functions of it. Two links share nothing. */
export interface Link {
  readonly register: Register;
  readonly resolve: Resolve;
  readonly resolveUser: ResolveUser;
  readonly resolveTenant: ResolveTenant;
  readonly observer: Observer;
}

const SILENT: Observer = {
  run: (_fields, _headers, work) => work(),
  note: () => undefined,
  span: (_name, work) => work(),
  handled: () => undefined,
};

/** Links ids of a provider to internal ids. Each lookup asks the store unless `cache` has the id. */
export function createLink({
  store,
  cache,
  observer: given,
}: {
  readonly store: Store;
  readonly cache?: Cache | undefined;
  readonly observer?: Partial<Observer>;
}): Link {
  const observer = { ...SILENT, ...given };
  const register = createRegister(store, observer);
  const resolve = createResolve(register, cache);

  async function contextOf(verdict: Verdict): Promise<AuthenticatedContext | undefined> {
    const { user, actor, issuedAt, reason = 'forgotten', isUnchecked, isAccessToken } = verdict;
    if (actor) observer.note({ impersonated: true });
    const resolved = user === undefined ? undefined : await resolve('user', user, issuedAt);
    if (user !== undefined && resolved?.state === 'linked') {
      const { state, id: userId, ...fields } = resolved;
      observer.note(fields);
      return Object.freeze({ isAuthenticated: true, userId, identityProviderUserId: user });
    }
    observer.note({ reason });
    if (isUnchecked && !isAccessToken)
      throw new HttpError(503, 'Service Unavailable', { 'retry-after': '1' });
    return undefined;
  }

  const resolveUser: ResolveUser = (verdict) =>
    observer.span(
      'guard',
      () => contextOf(verdict),
      (context) => (context ? 'passed' : 'rejected'),
    );

  const resolveTenant: ResolveTenant = async (verdict, userOf = resolveUser) => {
    const { organization } = verdict;
    // Both lookups begin together, so they are one round trip.
    const read: Promise<CacheRead> | undefined = organization && cache?.read('tenant', organization.id);
    const user = await userOf(verdict);
    if (user === undefined || organization === undefined) return { user };
    // Without the issue time of the token, because no token links a forgotten organization again.
    const tenant = await resolve('tenant', organization.id, undefined, read);
    if (tenant.state === 'forgotten') return { user };
    return {
      user,
      tenant: Object.freeze({
        ...user,
        tenantId: tenant.id,
        identityProviderOrganizationId: organization.id,
        organizationRole: organization.role,
      }),
    };
  };

  return { register, resolve, resolveUser, resolveTenant, observer };
}
