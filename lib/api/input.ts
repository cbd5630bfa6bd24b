/** A schema of zod, valibot, arktype or another library that implements Standard Schema (https://standardschema.dev). */
export interface Schema<Input, Output> {
  readonly '~standard': {
    readonly validate: (value: unknown) => ValidationResult<Output> | Promise<ValidationResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export interface Issue {
  readonly message: string;
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

type ValidationResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

/**
 * Returns what is wrong with a value that must be a text. Returns undefined for a non-empty string of at most `maxLength` code
 * points that PostgreSQL and JSON can represent: well-formed Unicode without NUL.
 */
export function textProblem(value: unknown, maxLength: number): string | undefined {
  if (typeof value !== 'string') return 'must be a string';
  if (value === '') return 'must not be empty';
  // The first comparison avoids the count of code points for a long text.
  if (value.length > 2 * maxLength || [...value].length > maxLength)
    return `must have at most ${maxLength} characters`;
  return /[\0\uD800-\uDFFF]/u.test(value) ? 'must be well-formed Unicode without NUL' : undefined;
}

/** An internal id as the database returns it. New ids have UUID version 7. Imported rows may have another version. */
export const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Maximum number of code points of an identity-provider user id. */
export const MAX_ID_LENGTH = 255;

/** Returns true for an id in the format of docs/contract.md, 2.7. */
export const isIdentityProviderUserId = (id: unknown): id is string =>
  textProblem(id, MAX_ID_LENGTH) === undefined;

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
  const { sub, type = null }: { readonly sub?: unknown; readonly type?: unknown } = Object(act);
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
  const { o, org_role }: { readonly o?: unknown; readonly org_role?: unknown } = Object(sessionClaims);
  const claim = o === undefined ? org_role : Object(o).rol;
  if (!isIdentityProviderUserId(id) || typeof role !== 'string') return undefined;
  return typeof claim === 'string' && claim !== '' ? { id, role } : undefined;
}

const invalid = (message: string) => ({ issues: [{ message }] });

/** Schema of the body of `POST /auth/v1/register` (docs/contract.md, 2.3). Ignores unknown fields, and does not change the id. */
export const RegisterUserRequest: Schema<unknown, { readonly identityProviderUserId: string }> = {
  '~standard': {
    validate(body) {
      if (typeof body !== 'object' || body === null || Array.isArray(body))
        return invalid('The request body must be a JSON object');
      const id: unknown = Reflect.get(body, 'identityProviderUserId');
      return isIdentityProviderUserId(id)
        ? { value: { identityProviderUserId: id } }
        : invalid(`identityProviderUserId ${textProblem(id, MAX_ID_LENGTH)}`);
    },
  },
};
