import { z } from 'zod';
import { Algorithm, isUsableKey } from './jwt';

/** A field that is optional or null for its initial value. */
const setting = <Value>(schema: z.ZodType<Value>, initial: Value) =>
  schema.nullish().transform((value) => value ?? initial);

/** Fields of a user with Clerk's names. A request sets them, and responses contain them. Null is the default. */
export const UserSettings = z.object({
  locale: z.string().nullable().default(null),
  /** Clerk's SDKs have this field. Its documents do not. */
  timezone: z.string().nullable().default(null),
  legal_accepted_at: setting<number | null>(
    z.iso.datetime({ offset: true }).transform(Date.parse).or(z.number()),
    null,
  ),
  delete_self_enabled: setting(z.boolean(), true),
  create_organization_enabled: setting(z.boolean(), true),
  /** 0 is no limit. */
  create_organizations_limit: setting(z.number(), 0),
  bypass_client_trust: setting(z.boolean(), false),
});

/** A token template with the fields of `POST /v1/jwt_templates`. Its claims may contain shortcodes, such as `{{user.id}}`. */
export const TokenTemplate = z
  .strictObject({
    name: z.string().regex(/^[\w-]+$/),
    claims: z.record(z.string(), z.unknown()),
    lifetime: setting(z.int().min(30).max(315_360_000), 60),
    allowed_clock_skew: setting(z.int().min(0).max(300), 5),
    custom_signing_key: z.boolean().default(false),
    signing_algorithm: setting<Algorithm>(Algorithm, 'RS256'),
    /** A shared secret for HS256, HS384 and HS512, else a private key in PEM. */
    signing_key: z.string().nullish(),
  })
  .refine(
    (template) =>
      !template.custom_signing_key || isUsableKey(template.signing_algorithm, template.signing_key ?? ''),
    { error: 'the key cannot sign with signing_algorithm', path: ['signing_key'] },
  );
export type TokenTemplate = Readonly<z.output<typeof TokenTemplate>>;

/** The scopes of Clerk's OAuth clients. */
export const SCOPES = [
  'openid',
  'profile',
  'email',
  'public_metadata',
  'private_metadata',
  'offline_access',
] as const;

/** Settings that a Clerk instance has in its dashboard. They are the same in code, in a seed file and over HTTP. */
export const Settings = z.object({
  /**
   * Active organization after a sign-in. `last`: that of the user's last session, and at the first sign-in the organization that
   * the user joined last. `none`: none, so that the user starts in the personal account. Default: `last`.
   */
  activeOrganization: z.enum(['last', 'none']).default('last'),
  /** Whether each session needs an active organization. A user without one chooses or creates one after the sign-in. */
  organizationRequired: z.boolean().default(false),
  /**
   * Permissions by role, such as `{ 'org:editor': ['org:posts:manage'] }`. The roles `org:admin` and `org:member` also have
   * their system permissions. Default: only these two roles.
   */
  roles: z
    .record(z.string().regex(/^org:\w+$/), z.array(z.string().regex(/^org:\w+:\w+$/)).readonly())
    .default({}),
  /** Whether several users can be signed in at the same time in a browser. Default: false. */
  multiSession: z.boolean().default(false),
  /** Whether users can choose a user name, in addition to their e-mail address. Default: false. */
  usernames: z.boolean().default(false),
  /** Whether users can have phone numbers and sign in with them. The code for +1 (xxx) 555-01xx is 424242. Default: false. */
  phoneNumbers: z.boolean().default(false),
  /** Social providers, such as `google` or `custom_acme`. A page of the emulator plays the provider. Default: none. */
  socialProviders: z
    .array(z.string().regex(/^[a-z_]+$/))
    .readonly()
    .default([]),
  /** Whether a user must be verified again for a sensitive change more than ten minutes after the last time. Default: false. */
  reverification: z.boolean().default(false),
  /** Whether only invited users can sign up, and others can join the waitlist. Default: false. */
  waitlist: z.boolean().default(false),
  /** Whether a user must enter a mailed code to complete a sign-up. Default: true. */
  verifyEmailAtSignUp: z.boolean().default(true),
  /** Lifetime of a session token, in seconds. Default: 60. */
  sessionTokenSeconds: z.number().positive().default(60),
  /** Claims that session tokens have in addition, with shortcodes as in a token template. Default: none. */
  sessionClaims: z.record(z.string(), z.unknown()).default({}),
  /** Token templates. The Backend API can add others. Default: none. */
  tokenTemplates: z.array(TokenTemplate).readonly().default([]),
  /**
   * Scopes of an OAuth client that registers itself without `scope`, and, with `offline_access`, of one that has a metadata
   * document. Default: `profile` and `email`.
   */
  oauthDefaultScopes: z.array(z.enum(SCOPES)).min(1).readonly().default(['profile', 'email']),
  /** Whether the `client_id` of an OAuth client can be the address of its metadata document (CIMD). Default: false. */
  clientMetadataDocuments: z.boolean().default(false),
});

export type Settings = z.output<typeof Settings>;
export type SettingsInput = z.input<typeof Settings>;
