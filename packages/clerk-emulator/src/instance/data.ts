import { z } from 'zod';
import { Metadata } from './metadata';
import { TokenTemplate, UserSettings } from './settings';

const RowMetadata = { publicMetadata: Metadata.default({}), privateMetadata: Metadata.default({}) };
/** Milliseconds since 1970. */
export const Time = z.number();
/** An optional text. */
const Text = z.string().nullable().default(null);
/** The fields that users and sign-ups share. `password` is a hash with the name of its algorithm. */
const Profile = {
  email: Text,
  username: Text,
  password: Text,
  firstName: Text,
  lastName: Text,
  unsafeMetadata: Metadata.default({}),
};
/** The fields that most rows share. */
const Dated = { id: z.string(), createdAt: Time, updatedAt: Time };

/** A verification of the user by a code, the password, a ticket (a secret in a link), or a social provider. */
export const Verification = z.object({
  strategy: z.string(),
  status: z.enum(['unverified', 'verified', 'transferable']).default('unverified'),
  code: Text,
  attempts: z.number().default(0),
  expireAt: Time.default(0),
  /** The page of a social provider, and the page of the application to which it returns. */
  social: z.object({ page: z.string(), returnUrl: z.string() }).optional(),
  error: z.looseObject({ code: z.string() }).optional(),
});

/** An account of a user at a social provider. An account that the user is connecting has a verification. */
const ExternalAccount = z.object({
  id: z.string(),
  provider: z.string(),
  email: z.string(),
  firstName: Text,
  lastName: Text,
  verification: Verification.optional(),
});
const SocialAccount = ExternalAccount.omit({ id: true, verification: true }).nullable().default(null);

/** An e-mail address, a phone number or the address of a wallet. It identifies one user. */
const Identifier = z.object({ id: z.string(), value: z.string() });

/** An identifier that the user added has a verification. An identifier without one is verified. */
const CodeIdentifier = Identifier.extend({ verification: Verification.optional() });

/** An account. The first identifier of each kind is primary. */
export const User = z.object({
  ...Dated,
  ...Profile,
  emails: z.array(CodeIdentifier),
  phones: z.array(CodeIdentifier),
  wallets: z.array(Identifier),
  externalId: Text,
  passwordUpdatedAt: Time.nullable().default(null),
  ...RowMetadata,
  lastSignInAt: Time.nullable().default(null),
  banned: z.boolean().default(false),
  /** A lock never expires: Clerk's setting "Indefinite lockout". */
  locked: z.boolean().default(false),
  settings: UserSettings.default(UserSettings.parse({})),
  /** Address of the picture. Users without one get their initials. */
  imageUrl: Text,
  externalAccounts: z.array(ExternalAccount).default([]),
  /** Has microseconds after the decimal point, by which the API filters and sorts. It returns whole milliseconds. */
  createdAt: Time,
});

/** Record of a browser or a native app. It sends the token in a cookie, in the query or in the `authorization` header. */
export const Client = z.object({
  ...Dated,
  token: z.string(),
  signInId: Text,
  signUpId: Text,
  lastStrategy: Text,
  /** The `User-Agent` header, which tells the devices of a user apart. */
  userAgent: z.string().default(''),
  /** Time of the last sign-in or sign-out. The SDK rejects session tokens that were issued earlier. */
  updatedAt: Time,
});

/** A session of a user on a client. After `expireAt`, the status stays `active` until a request reads the session. */
export const Session = z.object({
  ...Dated,
  userId: z.string(),
  clientId: z.string(),
  /** The active organization, which session tokens contain. */
  organizationId: z.string().nullable(),
  status: z.enum(['active', 'ended', 'removed', 'revoked', 'expired']),
  lastActiveAt: Time,
  expireAt: Time,
  /** Time of the last reverification. Without one, it is the time of the sign-in. */
  verifiedAt: Time.optional(),
  /** The reverification that the user has begun and not completed. */
  reverification: Verification.optional(),
  /** The actor who uses the session instead of the user, as the claim `act` of its tokens. */
  actor: Metadata.optional(),
});

/** An attempt to sign in. */
export const SignIn = z.object({
  id: z.string(),
  clientId: z.string(),
  status: z.enum(['needs_identifier', 'needs_first_factor', 'needs_new_password', 'complete']),
  identifier: Text,
  userId: Text,
  verification: Verification.nullable().default(null),
  /** The account that a social provider has reported, and that no user has. */
  external: SocialAccount,
  createdSessionId: Text,
  abandonAt: Time,
});

/** An attempt to sign up. Its completion creates the user. */
export const SignUp = z.object({
  id: z.string(),
  ...Profile,
  clientId: z.string(),
  status: z.enum(['missing_requirements', 'complete']).default('missing_requirements'),
  verification: Verification.nullable().default(null),
  phone: Text,
  phoneVerification: Verification.nullable().default(null),
  external: SocialAccount,
  externalVerification: Verification.nullable().default(null),
  legalAcceptedAt: Time.nullable().default(null),
  /** The invitation that the sign-up accepts. */
  invitationId: Text,
  createdUserId: Text,
  createdSessionId: Text,
  abandonAt: Time,
});

/** The fields of a ticket, a secret string in a link. It is created through the Backend API and accepted once. */
const TicketFields = {
  ...Dated,
  ticket: z.string(),
  status: z.enum(['pending', 'accepted', 'revoked']),
  expireAt: Time,
};

/** A ticket that signs a user in, or an actor as the user. */
export const SignInToken = z.object({
  ...TicketFields,
  kind: z.literal('sign_in_token'),
  userId: z.string(),
  organizationId: z.string().optional(),
  actor: Metadata.optional(),
  sessionSeconds: z.number().optional(),
});

/** A ticket that lets its recipient sign up. It proves the e-mail address. */
export const Invitation = z.object({
  ...TicketFields,
  kind: z.literal('invitation'),
  email: z.string(),
  publicMetadata: Metadata,
  redirectUrl: z.string().nullable(),
});

/** An e-mail address on the waitlist, with the invitation that it has got. */
export const WaitlistEntry = z.object({
  ...Dated,
  email: z.string(),
  status: z.enum(['pending', 'invited', 'rejected']),
  invitationId: z.string().nullable(),
});

/** An organization. Its members share its data in an application. */
export const Organization = z.object({
  ...Dated,
  name: z.string(),
  slug: z.string(),
  createdBy: Text,
  /** 0 is no limit. */
  maxMemberships: z.number().default(5),
  adminDeleteEnabled: z.boolean().default(true),
  imageUrl: Text,
  ...RowMetadata,
});

/** A membership of a user in an organization. The role is a key, such as `org:admin`. */
export const Membership = z.object({
  ...Dated,
  organizationId: z.string(),
  userId: z.string(),
  role: z.string(),
  ...RowMetadata,
});

/** An invitation to an organization. A user with its e-mail address can accept it. */
export const OrganizationInvitation = z.object({
  ...Dated,
  organizationId: z.string(),
  email: z.string(),
  role: z.string(),
  inviterId: Text,
  status: z.enum(['pending', 'accepted', 'revoked']),
  expireAt: Time.nullable().default(null),
  ...RowMetadata,
});

const Mode = z.enum(['manual_invitation', 'automatic_invitation', 'automatic_suggestion', 'enterprise_sso']);

/** A domain of an organization. Its enrollment mode has no effect, because the emulator invites no users by their addresses. */
export const OrganizationDomain = z.object({
  ...Dated,
  organizationId: z.string(),
  name: z.string(),
  enrollmentMode: Mode,
  verified: z.boolean(),
});

/**
 * An application that acts for users. `id` is its `client_id`. It has registered itself, or its id is the address of a metadata
 * document, which `updatedAt` is the time of. A public client has no secret.
 */
export const OAuthClient = z.object({
  ...Dated,
  name: z.string(),
  redirectUris: z.array(z.string()),
  scopes: z.array(z.string()),
  secret: z.string().nullable(),
});

/** The consent of a user to a request of a client, and the tokens of the client. It gets no new tokens after the session. */
export const OAuthGrant = z.object({
  ...Dated,
  userId: z.string(),
  clientId: z.string(),
  sessionId: z.string(),
  request: z.object({
    redirect_uri: z.string(),
    scope: z.array(z.string()),
    code_challenge: z.string().optional(),
    resource: z.string().optional(),
    nonce: z.string().optional(),
  }),
  /** A code can be used once, and a refresh token for a few seconds after its use. A refresh token does not expire. */
  tokens: z.array(
    z.object({
      kind: z.enum(['code', 'access', 'refresh']),
      secret: z.string(),
      used: z.boolean(),
      usedAt: Time.optional(),
      scopes: z.array(z.string()).optional(),
      expireAt: Time.optional(),
    }),
  ),
});

/** The picture of a user or of an organization. */
export const Image = z.object({ id: z.string(), type: z.string(), base64: z.string() });

export const TokenTemplateRow = z.object({ ...Dated, ...TokenTemplate.shape });

/** A mail or text message that Clerk would have sent. The emulator only stores it. */
export const Mail = z.object({
  id: z.string(),
  to: z.string(),
  code: z.string(),
  purpose: z.string(),
  sentAt: Time,
});

export type User = Readonly<z.infer<typeof User>>;
export type Client = Readonly<z.infer<typeof Client>>;
export type Session = Readonly<z.infer<typeof Session>>;
export type SignIn = Readonly<z.infer<typeof SignIn>>;
export type SignUp = Readonly<z.infer<typeof SignUp>>;
export type SignInToken = Readonly<z.infer<typeof SignInToken>>;
export type Invitation = Readonly<z.infer<typeof Invitation>>;
export type Ticket = SignInToken | Invitation;
export type WaitlistEntry = Readonly<z.infer<typeof WaitlistEntry>>;
export type Organization = Readonly<z.infer<typeof Organization>>;
export type Membership = Readonly<z.infer<typeof Membership>>;
export type OrganizationInvitation = Readonly<z.infer<typeof OrganizationInvitation>>;
export type OrganizationDomain = Readonly<z.infer<typeof OrganizationDomain>>;
export type OAuthClient = Readonly<z.infer<typeof OAuthClient>>;
export type OAuthGrant = Readonly<z.infer<typeof OAuthGrant>>;
export type ExternalAccount = Readonly<z.infer<typeof ExternalAccount>>;
export type TokenTemplateRow = Readonly<z.infer<typeof TokenTemplateRow>>;
export type Verification = Readonly<z.infer<typeof Verification>>;
export type Mail = Readonly<z.infer<typeof Mail>>;
