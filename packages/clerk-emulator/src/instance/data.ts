import { z } from 'zod';
import { Metadata } from './metadata';
import { setting, TokenTemplate } from './settings';
import { openTable, type Table } from './table';

const RowMetadata = { publicMetadata: Metadata.default({}), privateMetadata: Metadata.default({}) };
/** Milliseconds since 1970. */
const Time = z.number();
/** The fields that most rows share. */
const Dated = { id: z.string(), createdAt: Time, updatedAt: Time };
export type Dated = Readonly<{ id: string; createdAt: number; updatedAt: number }>;

/** A verification of the user by a code, the password, a ticket (a secret in a link), or a social provider. */
export const Verification = z.object({
  strategy: z.string(),
  status: z.enum(['unverified', 'verified', 'transferable']).default('unverified'),
  code: z.string().nullable().default(null),
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
  firstName: z.string().nullable(),
  lastName: z.string().nullable(),
  verification: Verification.optional(),
});
const SocialAccount = ExternalAccount.omit({ id: true, verification: true }).nullable().default(null);

/** An e-mail address, a phone number or the address of a wallet. It identifies one user. */
const Identifier = z.object({ id: z.string(), value: z.string() });

/** An identifier that the user added has a verification. An identifier without one is verified. */
const CodeIdentifier = Identifier.extend({ verification: Verification.optional() });

/** Fields of a user with Clerk's names. A request sets them, and responses contain them. Null is the default. */
export const UserSettings = z.object({
  locale: z.string().nullable().default(null),
  /** Clerk's SDKs have this field. Its documents do not. */
  timezone: z.string().nullable().default(null),
  legal_accepted_at: setting<number | null>(
    z.iso.datetime({ offset: true }).transform(Date.parse).or(Time),
    null,
  ),
  delete_self_enabled: setting(z.boolean(), true),
  create_organization_enabled: setting(z.boolean(), true),
  /** 0 is no limit. */
  create_organizations_limit: setting(z.number(), 0),
  bypass_client_trust: setting(z.boolean(), false),
});

/** An account. The first identifier of each kind is primary. `password` is a hash with the name of its algorithm. */
export const User = z.object({
  ...Dated,
  email: z.string().nullable().default(null),
  emails: z.array(CodeIdentifier),
  phones: z.array(CodeIdentifier),
  wallets: z.array(Identifier),
  username: z.string().nullable().default(null),
  firstName: z.string().nullable().default(null),
  lastName: z.string().nullable().default(null),
  externalId: z.string().nullable().default(null),
  password: z.string().nullable().default(null),
  passwordUpdatedAt: Time.nullable().default(null),
  ...RowMetadata,
  unsafeMetadata: Metadata.default({}),
  lastSignInAt: Time.nullable().default(null),
  /** Data files of earlier versions lack `banned` and `locked`. A lock never expires: Clerk's setting "Indefinite lockout". */
  banned: z.boolean().default(false),
  locked: z.boolean().default(false),
  settings: UserSettings.default(UserSettings.parse({})),
  /** Address of the picture. Users without one get their initials. */
  imageUrl: z.string().nullable().default(null),
  externalAccounts: z.array(ExternalAccount).default([]),
  /** Has microseconds after the decimal point, by which the API filters and sorts. It returns whole milliseconds. */
  createdAt: Time,
});

/** Record of a browser or a native app. It sends the token in a cookie, in the query or in the `authorization` header. */
export const Client = z.object({
  ...Dated,
  token: z.string(),
  signInId: z.string().nullable().default(null),
  signUpId: z.string().nullable().default(null),
  lastStrategy: z.string().nullable().default(null),
  /** The `User-Agent` header, which tells the devices of a user apart. */
  userAgent: z.string().default(''),
  /** Time of the last sign-in or sign-out. The SDK rejects session tokens that were issued earlier. */
  updatedAt: Time,
});

/** A session of a user on a client. After `expireAt`, the status stays `active` until a request reads the session. */
const Session = z.object({
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
  identifier: z.string().nullable().default(null),
  userId: z.string().nullable().default(null),
  verification: Verification.nullable().default(null),
  /** The account that a social provider has reported, and that no user has. */
  external: SocialAccount,
  createdSessionId: z.string().nullable().default(null),
  abandonAt: Time,
});

/** An attempt to sign up. Its completion creates the user. `password` is a hash. */
export const SignUp = z.object({
  id: z.string(),
  clientId: z.string(),
  status: z.enum(['missing_requirements', 'complete']).default('missing_requirements'),
  email: z.string().nullable().default(null),
  username: z.string().nullable().default(null),
  password: z.string().nullable().default(null),
  firstName: z.string().nullable().default(null),
  lastName: z.string().nullable().default(null),
  unsafeMetadata: Metadata.default({}),
  verification: Verification.nullable().default(null),
  phone: z.string().nullable().default(null),
  phoneVerification: Verification.nullable().default(null),
  external: SocialAccount,
  externalVerification: Verification.nullable().default(null),
  legalAcceptedAt: Time.nullable().default(null),
  /** The invitation that the sign-up accepts. */
  invitationId: z.string().nullable().default(null),
  createdUserId: z.string().nullable().default(null),
  createdSessionId: z.string().nullable().default(null),
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
const SignInToken = z.object({
  ...TicketFields,
  kind: z.literal('sign_in_token').default('sign_in_token'),
  userId: z.string(),
  organizationId: z.string().optional(),
  actor: Metadata.optional(),
  sessionSeconds: z.number().optional(),
});

/** A ticket that lets its recipient sign up. It proves the e-mail address. */
const Invitation = z.object({
  ...TicketFields,
  kind: z.literal('invitation').default('invitation'),
  email: z.string(),
  publicMetadata: Metadata,
  redirectUrl: z.string().nullable(),
});

/** An organization. Its members share its data in an application. */
export const Organization = z.object({
  ...Dated,
  name: z.string(),
  slug: z.string(),
  createdBy: z.string().nullable().default(null),
  /** 0 is no limit. */
  maxMemberships: z.number().default(5),
  adminDeleteEnabled: z.boolean().default(true),
  imageUrl: z.string().nullable().default(null),
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
  inviterId: z.string().nullable().default(null),
  status: z.enum(['pending', 'accepted', 'revoked']),
  expireAt: Time.nullable().default(null),
  ...RowMetadata,
});

/**
 * An application that acts for users. `id` is its `client_id`. It has registered itself, or its id is the address of a metadata
 * document, which `updatedAt` is the time of. A public client has no secret.
 */
const OAuthClient = z.object({
  ...Dated,
  name: z.string(),
  redirectUris: z.array(z.string()),
  scopes: z.array(z.string()),
  secret: z.string().nullable(),
});

/** The consent of a user to a request of a client, and the tokens of the client. It gets no new tokens after the session. */
const OAuthGrant = z.object({
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
const Image = z.object({ id: z.string(), type: z.string(), base64: z.string() });

const TokenTemplateRow = z.object({ ...Dated, ...TokenTemplate.shape });

/** A mail or text message that Clerk would have sent. The emulator only stores it. */
const Mail = z.object({
  id: z.string(),
  to: z.string(),
  code: z.string(),
  purpose: z.string(),
  sentAt: Time,
});

/** One attempt to deliver an event. `answer` is the start of the response body, or the error if there was no response. */
const DeliveryAttempt = z.object({
  at: Time,
  status: z.number().nullable(),
  answer: z.string(),
  durationMilliseconds: z.number(),
});

/** An event for the webhook endpoint. Its id and its bytes are the same in every attempt. */
const Delivery = z.object({
  id: z.string(),
  type: z.string(),
  body: z.string(),
  /** A delivered event stays `delivered` even if a redelivery fails. */
  status: z.enum(['pending', 'delivered', 'failed']),
  attempts: z.array(DeliveryAttempt),
  /** Number of failed attempts since the event was sent or last redelivered. This number selects the next retry delay. */
  failures: z.number(),
  /** Number of successful attempts that are still to be made. */
  copies: z.number(),
  /** Time of the next attempt, or null if there is none. */
  nextTryAt: Time.nullable(),
  createdAt: Time,
});

/** A data file of an earlier version has a table for each kind of ticket. Its tickets lack the field `kind`. */
const EarlierData = z.looseObject({
  signInTokens: z.array(z.unknown()).default([]),
  invitations: z.array(z.unknown()).default([]),
});

/** Returns the schema of a data file. Its tables call `changed` after each change. Files of earlier versions lack some. */
export function dataSchema(changed: () => void) {
  const table = <Row extends z.ZodType<{ readonly id: string }>>(row: Row) =>
    z
      .array(row)
      .default([])
      .transform((rows): Table<Readonly<z.output<Row>>> => openTable(rows, changed));
  const Data = z.object({
    version: z.literal(2),
    signingKeyPem: z.string(),
    users: table(User),
    clients: table(Client),
    sessions: table(Session),
    signIns: table(SignIn),
    signUps: table(SignUp),
    tickets: table(z.union([SignInToken, Invitation])),
    organizations: table(Organization),
    memberships: table(Membership),
    organizationInvitations: table(OrganizationInvitation),
    oauthClients: table(OAuthClient),
    oauthGrants: table(OAuthGrant),
    images: table(Image),
    tokenTemplates: table(TokenTemplateRow),
    mails: table(Mail),
    deliveries: table(Delivery),
  });
  return z.preprocess((file) => {
    const { signInTokens, invitations, ...data } = EarlierData.parse(file);
    return { tickets: [...signInTokens, ...invitations], ...data };
  }, Data);
}

export type Data = z.output<ReturnType<typeof dataSchema>>;
export type User = Readonly<z.infer<typeof User>>;
export type Client = Readonly<z.infer<typeof Client>>;
export type Session = Readonly<z.infer<typeof Session>>;
export type SignIn = Readonly<z.infer<typeof SignIn>>;
export type SignUp = Readonly<z.infer<typeof SignUp>>;
export type SignInToken = Readonly<z.infer<typeof SignInToken>>;
export type Invitation = Readonly<z.infer<typeof Invitation>>;
export type Ticket = SignInToken | Invitation;
export type Organization = Readonly<z.infer<typeof Organization>>;
export type Membership = Readonly<z.infer<typeof Membership>>;
export type OrganizationInvitation = Readonly<z.infer<typeof OrganizationInvitation>>;
export type OAuthClient = Readonly<z.infer<typeof OAuthClient>>;
export type OAuthGrant = Readonly<z.infer<typeof OAuthGrant>>;
export type ExternalAccount = Readonly<z.infer<typeof ExternalAccount>>;
export type TokenTemplateRow = Readonly<z.infer<typeof TokenTemplateRow>>;
export type Verification = Readonly<z.infer<typeof Verification>>;
export type Mail = Readonly<z.infer<typeof Mail>>;
export type Delivery = Readonly<z.infer<typeof Delivery>>;
export type DeliveryAttempt = Readonly<z.infer<typeof DeliveryAttempt>>;
