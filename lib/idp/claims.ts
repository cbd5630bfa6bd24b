import { isIdentityProviderUserId } from '../api/identifier';
import { fieldsOf } from '../base/fields';

/** The party that acts for the user of a session: a person who impersonates the user or, with type `agent`, an agent. */
export interface Actor {
  readonly id: string;
  readonly type?: string;
}

/**
 * Returns the actor in the claim `act` of a session token (RFC 8693, 4.1). Returns undefined without the claim, and null for a
 * malformed claim. The id of an actor follows the rule for user ids.
 */
export function parseActor(act: unknown): Actor | null | undefined {
  if (act === undefined || act === null) return undefined;
  const { sub, type = null } = fieldsOf(act);
  if (!isIdentityProviderUserId(sub)) return null;
  if (type === null) return { id: sub };
  return typeof type === 'string' ? { id: sub, type } : null;
}

/** The active organization of a session, and the user's role in it. */
export interface ActiveOrganization {
  readonly id: string;
  readonly role: string;
}

/**
 * Returns the active organization that the SDK read from the claims of a session token, or undefined if the id or the role is
 * malformed. The SDK does not check the types of the claims, and turns a role of any type into a text.
 */
export function parseOrganization(session: {
  readonly orgId?: unknown;
  readonly orgRole?: unknown;
  readonly sessionClaims?: object | null;
}): ActiveOrganization | undefined {
  const { orgId: id, orgRole: role, sessionClaims } = session;
  // A token of version 2 has the claim `o`.
  const { o, org_role } = fieldsOf(sessionClaims);
  const claim = o === undefined ? org_role : fieldsOf(o)['rol'];
  if (!isIdentityProviderUserId(id) || typeof role !== 'string') return undefined;
  return typeof claim === 'string' && claim !== '' ? { id, role } : undefined;
}
