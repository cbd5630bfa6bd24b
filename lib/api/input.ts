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

const MAX_LENGTH = 255;

/** Returns what is wrong with an identity-provider user id, or undefined for a valid id (docs/contract.md, 2.7). */
function problemOf(id: unknown): string | undefined {
  if (typeof id !== 'string') return 'must be a string';
  if (id === '') return 'must not be empty';
  // Counts code points. The first comparison avoids the count for a long text.
  if (id.length > 2 * MAX_LENGTH || [...id].length > MAX_LENGTH)
    return `must have at most ${MAX_LENGTH} characters`;
  // `isWellFormed()` does not compile in an application that copies this code and has the library ES2022.
  return /[\0\uD800-\uDFFF]/u.test(id) ? 'must be well-formed Unicode without NUL' : undefined;
}

/** Returns true for a non-empty string of at most 255 code points that PostgreSQL and JSON can represent. */
export const isIdentityProviderUserId = (id: unknown): id is string => problemOf(id) === undefined;

/** Body of `POST /auth/v1/register` (docs/contract.md, 2.3). */
export interface RegisterUserRequest {
  readonly identityProviderUserId: string;
}

const invalid = (message: string) => ({ issues: [{ message }] });

/** Schema of the body of `POST /auth/v1/register`. Ignores unknown fields, and does not change the id. */
export const RegisterUserRequest: Schema<unknown, RegisterUserRequest> = {
  '~standard': {
    validate(body) {
      if (typeof body !== 'object' || body === null || Array.isArray(body))
        return invalid('The request body must be a JSON object');
      const id: unknown = Reflect.get(body, 'identityProviderUserId');
      return isIdentityProviderUserId(id)
        ? { value: { identityProviderUserId: id } }
        : invalid(`identityProviderUserId ${problemOf(id)}`);
    },
  },
};
