/** Clerk's short messages by error code. The short message of any other error is the long one. */
export const SHORT_MESSAGES = new Map([
  ['already_a_member_in_organization', 'already a member'],
  ['authentication_invalid', 'Invalid authentication'],
  ['duplicate_record', 'duplicate invitation'],
  ['form_code_incorrect', 'is incorrect'],
  ['form_param_format_invalid', 'is invalid'],
  ['form_param_missing', 'is missing'],
  ['form_param_unknown', 'is unknown'],
  ['resource_not_found', 'not found'],
  ['session_exists', 'Session exists'],
  ['signed_out', 'Signed out'],
  ['user_locked', 'Account locked'],
]);

/**
 * An error response. `code` is Clerk's error code, or a code of the emulator if Clerk does not have this error. `parameter` is
 * the name of the invalid field, and `meta` has what else Clerk's components read.
 */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly parameter?: string,
    readonly meta?: Readonly<Record<string, unknown>>,
  ) {
    super(message);
  }
}

/** Returns an ApiError with the status 404 for a resource or a route that does not exist. */
export function notFound(what: string): ApiError {
  return new ApiError(404, 'resource_not_found', `${what} was not found.`);
}

/** Returns a value. Throws an ApiError with the status 404 if there is none. */
export function requireFound<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw notFound(what);
  return value;
}

/** Returns the error for an operation of Clerk that the emulator does not have. */
export function notEmulated(operation: string): ApiError {
  const message = `The emulator does not have the operation ${operation}. The README of clerk-emulator shows what it emulates.`;
  return new ApiError(501, 'operation_not_emulated', message);
}

/** Returns Clerk's error for a parameter that is missing, or that the operation does not have. */
export function parameterError(problem: 'missing' | 'unknown', name: string): ApiError {
  const text = problem === 'missing' ? 'must be included' : 'is not a valid parameter for this request';
  return new ApiError(422, `form_param_${problem}`, `${name} ${text}.`, name);
}
