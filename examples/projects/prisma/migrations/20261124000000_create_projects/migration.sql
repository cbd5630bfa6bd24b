-- CreateEnum
CREATE TYPE "project_role" AS ENUM ('owner', 'member');

-- CreateTable
CREATE TABLE "projects" (
    "id" UUID NOT NULL,
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
CREATE INDEX "project_members_user_id_project_id_idx" ON "project_members"("user_id", "project_id");

-- CreateIndex
CREATE INDEX "project_notes_user_id_idx" ON "project_notes"("user_id");

-- AddForeignKey
ALTER TABLE "project_members" ADD CONSTRAINT "project_members_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "project_members" ADD CONSTRAINT "project_members_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "project_notes" ADD CONSTRAINT "project_notes_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "project_notes" ADD CONSTRAINT "project_notes_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- A statement finds and writes only the notes of the user in app.user_id. After a transaction that has set app.user_id, the
-- setting is an empty text, so nullif() replaces it by NULL. FORCE applies the policy to the owner of the table as well. No
-- policy applies to a superuser.
ALTER TABLE "project_notes" ENABLE ROW LEVEL SECURITY;
ALTER TABLE "project_notes" FORCE ROW LEVEL SECURITY;
CREATE POLICY "own_notes" ON "project_notes"
    USING ("user_id" = nullif(current_setting('app.user_id', true), '')::uuid);

-- The role of the service. Test databases and previews do not have this role.
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'identity_link_service') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON "projects", "project_members", "project_notes" TO identity_link_service;
    END IF;
END $$;
