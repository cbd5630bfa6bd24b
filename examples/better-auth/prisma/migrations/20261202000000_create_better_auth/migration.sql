-- The tables of Better Auth 1.7.25 with the plugin `organization`, as its `getMigrations` creates them.
CREATE TABLE "auth_users" (
    "id" text not null primary key,
    "name" text not null,
    "email" text not null unique,
    "emailVerified" boolean not null,
    "image" text,
    "createdAt" timestamptz default CURRENT_TIMESTAMP not null,
    "updatedAt" timestamptz default CURRENT_TIMESTAMP not null
);

CREATE TABLE "auth_sessions" (
    "id" text not null primary key,
    "expiresAt" timestamptz not null,
    "token" text not null unique,
    "createdAt" timestamptz default CURRENT_TIMESTAMP not null,
    "updatedAt" timestamptz not null,
    "ipAddress" text,
    "userAgent" text,
    "userId" text not null references "auth_users" ("id") on delete cascade,
    "activeOrganizationId" text
);

CREATE TABLE "auth_accounts" (
    "id" text not null primary key,
    "accountId" text not null,
    "providerId" text not null,
    "userId" text not null references "auth_users" ("id") on delete cascade,
    "accessToken" text,
    "refreshToken" text,
    "idToken" text,
    "accessTokenExpiresAt" timestamptz,
    "refreshTokenExpiresAt" timestamptz,
    "scope" text,
    "password" text,
    "createdAt" timestamptz default CURRENT_TIMESTAMP not null,
    "updatedAt" timestamptz not null
);

CREATE TABLE "auth_verifications" (
    "id" text not null primary key,
    "identifier" text not null,
    "value" text not null,
    "expiresAt" timestamptz not null,
    "createdAt" timestamptz default CURRENT_TIMESTAMP not null,
    "updatedAt" timestamptz default CURRENT_TIMESTAMP not null
);

CREATE TABLE "auth_organizations" (
    "id" text not null primary key,
    "name" text not null,
    "slug" text not null unique,
    "logo" text,
    "createdAt" timestamptz not null,
    "metadata" text
);

CREATE TABLE "auth_members" (
    "id" text not null primary key,
    "organizationId" text not null references "auth_organizations" ("id") on delete cascade,
    "userId" text not null references "auth_users" ("id") on delete cascade,
    "role" text not null,
    "createdAt" timestamptz not null
);

CREATE TABLE "auth_invitations" (
    "id" text not null primary key,
    "organizationId" text not null references "auth_organizations" ("id") on delete cascade,
    "email" text not null,
    "role" text,
    "status" text not null,
    "expiresAt" timestamptz not null,
    "createdAt" timestamptz default CURRENT_TIMESTAMP not null,
    "inviterId" text not null references "auth_users" ("id") on delete cascade
);

CREATE INDEX "auth_sessions_userId_idx" ON "auth_sessions" ("userId");

CREATE INDEX "auth_accounts_userId_idx" ON "auth_accounts" ("userId");

CREATE INDEX "auth_verifications_identifier_idx" ON "auth_verifications" ("identifier");

CREATE INDEX "auth_members_organizationId_idx" ON "auth_members" ("organizationId");

CREATE INDEX "auth_members_userId_idx" ON "auth_members" ("userId");

CREATE INDEX "auth_invitations_organizationId_idx" ON "auth_invitations" ("organizationId");

CREATE INDEX "auth_invitations_email_idx" ON "auth_invitations" ("email");

-- The role of the service. Test databases and previews do not have this role.
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'identity_link_service') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON "auth_users", "auth_sessions", "auth_accounts", "auth_verifications",
            "auth_organizations", "auth_members", "auth_invitations" TO identity_link_service;
    END IF;
END $$;
