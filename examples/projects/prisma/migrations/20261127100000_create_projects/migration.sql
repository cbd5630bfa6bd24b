-- CreateEnum
CREATE TYPE "project_role" AS ENUM ('owner', 'member');

-- CreateTable
CREATE TABLE "projects" (
    "id" UUID NOT NULL,
    "tenant_id" UUID NOT NULL,
    "name" VARCHAR(100) NOT NULL,

    CONSTRAINT "projects_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "project_members" (
    "project_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "role" "project_role" NOT NULL,

    CONSTRAINT "project_members_pkey" PRIMARY KEY ("project_id","user_id")
);

-- CreateTable
CREATE TABLE "project_notes" (
    "project_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "text" VARCHAR(1000) NOT NULL,

    CONSTRAINT "project_notes_pkey" PRIMARY KEY ("project_id","user_id")
);

-- CreateIndex
CREATE INDEX "projects_tenant_id_idx" ON "projects"("tenant_id");

-- CreateIndex
CREATE INDEX "project_members_user_id_project_id_idx" ON "project_members"("user_id", "project_id");

-- CreateIndex
CREATE INDEX "project_notes_user_id_idx" ON "project_notes"("user_id");

-- AddForeignKey
ALTER TABLE "projects" ADD CONSTRAINT "projects_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "project_members" ADD CONSTRAINT "project_members_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "project_members" ADD CONSTRAINT "project_members_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "project_notes" ADD CONSTRAINT "project_notes_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "project_notes" ADD CONSTRAINT "project_notes_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- A statement finds and writes only the projects of the tenant in app.tenant_id, their members, and the notes of the user in
-- app.user_id about them. The policy of "projects" also applies to the subqueries of the other two. After a transaction that has
-- set app.tenant_id, the setting is an empty text, so nullif() replaces it by NULL. FORCE applies the policies to the owner of the
-- tables as well. No policy applies to a superuser.
ALTER TABLE "projects" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "projects" FORCE ROW LEVEL SECURITY;
CREATE POLICY "of_tenant" ON "projects"
    USING ("tenant_id" = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE "project_members" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "project_members" FORCE ROW LEVEL SECURITY;
CREATE POLICY "of_tenant" ON "project_members"
    USING (EXISTS (SELECT FROM "projects" WHERE "id" = "project_id"));

ALTER TABLE "project_notes" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "project_notes" FORCE ROW LEVEL SECURITY;
CREATE POLICY "own_notes_of_tenant" ON "project_notes"
    USING ("user_id" = nullif(current_setting('app.user_id', true), '')::uuid
        AND EXISTS (SELECT FROM "projects" WHERE "id" = "project_id"));

-- The role of the service. Test databases and previews do not have this role.
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'identity_link_service') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON "projects", "project_members", "project_notes" TO identity_link_service;
    END IF;
END $$;
