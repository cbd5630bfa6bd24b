-- CreateTable
CREATE TABLE "previous_ids" (
    "identity_provider_user_id" VARCHAR(255) NOT NULL,
    "user_id" UUID NOT NULL,
    "replaced_by" VARCHAR(255) NOT NULL,
    "run" VARCHAR(64) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "previous_ids_pkey" PRIMARY KEY ("identity_provider_user_id")
);

-- CreateIndex
CREATE INDEX "previous_ids_user_id_idx" ON "previous_ids"("user_id");

-- CreateIndex
CREATE INDEX "previous_ids_run_idx" ON "previous_ids"("run");

-- AddForeignKey
ALTER TABLE "previous_ids" ADD CONSTRAINT "previous_ids_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- The roles that may read the users may also read their previous ids, for users:show and users:check.
DO $$
DECLARE
  reader regrole;
BEGIN
  FOR reader IN
    SELECT grantee FROM pg_class, aclexplode(relacl)
    WHERE oid = 'users'::regclass AND privilege_type = 'SELECT' AND grantee <> 0
  LOOP
    EXECUTE format('GRANT SELECT ON previous_ids TO %s', reader);
  END LOOP;
END $$;

-- Returns the users of previous ids. The user is NULL if the id has expired. The role of the service needs no privilege on
-- the table. The function is STABLE, so that it sees the same snapshot as the query that calls it.
CREATE FUNCTION previous_links(ids text[]) RETURNS TABLE (identity_provider_user_id text, user_id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY
    SELECT previous.identity_provider_user_id::text, CASE WHEN previous.expires_at > now() THEN previous.user_id END
    FROM public.previous_ids previous WHERE previous.identity_provider_user_id = ANY (ids);
END $$;

-- Also for databases whose owner has revoked the default privilege.
GRANT EXECUTE ON FUNCTION previous_links(text[]) TO PUBLIC;

-- Fails if the id of a new or changed row is a previous id, so that an id never has two internal ids. A registration whose
-- lookup ran before `users:relink` moved the user repeats after this error, and then finds the user.
--
-- The unique key of "users" makes the insert of a current id wait for a transaction that moves the user. The trigger runs
-- after that, and each query of a VOLATILE function sees what was committed before that query. At other isolation levels it
-- does not, so the primary key of the table decides there.
CREATE FUNCTION reject_previous_id() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    INSERT INTO public.previous_ids VALUES (NEW.identity_provider_user_id, NEW.id, '', '', now());
    DELETE FROM public.previous_ids WHERE identity_provider_user_id = NEW.identity_provider_user_id;
  ELSIF EXISTS (SELECT FROM public.previous_ids WHERE identity_provider_user_id = NEW.identity_provider_user_id) THEN
    RAISE unique_violation USING MESSAGE = 'the id is a previous id of a user';
  END IF;
  RETURN NULL;
END $$;

-- A role with this privilege could create a trigger on a table of its own. Casts of that table would run as the owner.
REVOKE EXECUTE ON FUNCTION reject_previous_id() FROM PUBLIC;

CREATE TRIGGER users_reject_previous_id AFTER INSERT OR UPDATE OF identity_provider_user_id ON users
FOR EACH ROW EXECUTE FUNCTION reject_previous_id();
