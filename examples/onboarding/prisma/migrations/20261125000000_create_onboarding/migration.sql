-- CreateTable
CREATE TABLE "workspaces" (
    "id" UUID NOT NULL,
    "owner_id" UUID NOT NULL,

    CONSTRAINT "workspaces_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "outbox" (
    "id" UUID NOT NULL,
    "kind" TEXT NOT NULL,
    "user_id" UUID NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "first_attempt_at" TIMESTAMPTZ(3),
    "due_at" TIMESTAMPTZ(3) DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "outbox_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "workspaces_owner_id_idx" ON "workspaces"("owner_id");

-- CreateIndex
CREATE INDEX "outbox_user_id_idx" ON "outbox"("user_id");

-- CreateIndex
CREATE INDEX "outbox_due_at_idx" ON "outbox"("due_at");

-- AddForeignKey
ALTER TABLE "workspaces" ADD CONSTRAINT "workspaces_owner_id_fkey" FOREIGN KEY ("owner_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "outbox" ADD CONSTRAINT "outbox_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Runs in the statement that links a user, so both are committed or neither. If it raises an error, the user cannot sign in.
-- SECURITY DEFINER: the role of the service needs no privilege on the two tables.
CREATE FUNCTION onboard_user() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO public.workspaces (id, owner_id) VALUES (gen_random_uuid(), NEW.id);
  INSERT INTO public.outbox (id, kind, user_id) VALUES (gen_random_uuid(), 'welcome', NEW.id);
  RETURN NULL;
END $$;

-- A role with this privilege could create a trigger on a table of its own, which would run as the owner.
REVOKE EXECUTE ON FUNCTION onboard_user() FROM PUBLIC;

CREATE TRIGGER users_onboard AFTER INSERT ON "users" FOR EACH ROW EXECUTE FUNCTION onboard_user();

-- The users from before the trigger get a workspace, but no welcome. Until the end of the transaction, the lock of CREATE TRIGGER
-- blocks the insertion of users, so that none is missed.
INSERT INTO "workspaces" SELECT gen_random_uuid(), "id" FROM "users";

-- The role of the service. Test databases and previews do not have this role.
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'identity_link_service') THEN
        GRANT SELECT ON "workspaces" TO identity_link_service;
        GRANT SELECT, UPDATE, DELETE ON "outbox" TO identity_link_service;
    END IF;
END $$;
