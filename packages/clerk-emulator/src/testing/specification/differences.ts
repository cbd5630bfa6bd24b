import { z } from 'zod';

/** Fields in which the emulator differs on purpose from the specification, which consists of Clerk's OpenAPI documents. */
interface Difference {
  /** Name of the resource, as passed to `resource`. */
  readonly resource: string;
  readonly fields: readonly string[];
}

/** Optional fields of the specification that the emulator never sends. A response that contains such a field is an error. */
const LEFT_OUT: readonly (Difference & { readonly reason: string })[] = [
  {
    resource: 'environment',
    fields: ['protect_config'],
    reason: 'This field makes clerk-js load scripts from another host.',
  },
  {
    resource: 'user',
    fields: ['create_organizations_limit', 'bypass_client_trust', 'scim'],
    reason: 'These features are not emulated.',
  },
  {
    resource: 'session activity',
    fields: ['browser_name', 'browser_version', 'city', 'country'],
    reason: 'The emulator does not parse user agents or locate addresses.',
  },
  {
    resource: 'backend session',
    fields: ['latest_activity', 'tasks'],
    reason: 'Only the Frontend API returns the activity of a session. Sessions have no tasks.',
  },
  {
    resource: 'json web key',
    fields: ['x5c', 'x5t', 'x5t#S256', 'x5u'],
    reason: 'The signing key has no certificate.',
  },
  {
    resource: 'sign-in factor',
    fields: ['external_verification_redirect_url', 'default'],
    reason: 'The instance offers no factor with these fields.',
  },
];

/**
 * Fields that the pinned clerk-js reads and the specification does not contain. A response without such a field is an
 * error. The specification describes protect checks (Clerk's bot protection) only in part. It contains the status
 * `needs_protect_check` and a path without HTTP methods, but no fields.
 */
const ADDED: readonly (Difference & { readonly schema: z.ZodType })[] = [
  {
    resource: 'sign-up',
    fields: ['has_password'],
    schema: z.boolean(),
  },
  ...['sign-in', 'sign-up'].map((each) => ({
    resource: each,
    fields: ['protect_check'],
    schema: z
      .strictObject({
        status: z.literal('pending'),
        token: z.string(),
        sdk_url: z.url(),
        expires_at: z.int(),
      })
      .nullable(),
  })),
];

/**
 * Returns the schema of a resource: its specified fields without those in `LEFT_OUT`, and its fields in `ADDED`. Any other
 * field in a response is an error.
 */
export function resource(name: string, fields: z.ZodRawShape): z.ZodType {
  const leftOut = LEFT_OUT.filter((each) => each.resource === name).flatMap((each) => each.fields);
  const added = ADDED.filter((each) => each.resource === name).flatMap((each) =>
    each.fields.map((field) => [field, each.schema] as const),
  );
  const specified = Object.entries(fields).filter(([field]) => !leftOut.includes(field));
  return z.strictObject(Object.fromEntries([...specified, ...added]));
}

/** Describes the differences as Markdown. */
export function describeDifferences(): string {
  const describe = ({ resource: name, fields }: Difference) =>
    `- ${name} ${fields.map((field) => `\`${field}\``).join(', ')}`;
  return `### Differences from the specification

The tests check every response against the specification. Omitted optional fields:

${LEFT_OUT.map((each) => `${describe(each)}: ${each.reason}`).join('\n')}

Fields that clerk-js 6.34.1 reads and the specification lacks:

${ADDED.map(describe).join('\n')}
`;
}
