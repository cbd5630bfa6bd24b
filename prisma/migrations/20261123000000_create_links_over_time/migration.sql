-- CreateTable
CREATE TABLE "tenants" (
    "id" UUID NOT NULL,
    "identity_provider_organization_id" VARCHAR(255) NOT NULL,

    CONSTRAINT "tenants_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "webhook_messages" (
    "id" VARCHAR(255) NOT NULL,
    "received_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "webhook_messages_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "webhook_subjects" (
    "id" TEXT NOT NULL,
    "applied_time" BIGINT NOT NULL,
    "received_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "webhook_subjects_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "pending_deletions" (
    "kind" TEXT NOT NULL,
    "provider_id" VARCHAR(255) NOT NULL,
    "due_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "pending_deletions_pkey" PRIMARY KEY ("kind", "provider_id")
);

-- CreateTable
CREATE TABLE "unfinished_deletions" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "kind" TEXT NOT NULL,
    "internal_id" UUID,
    "provider_ids" TEXT[],
    "is_due" BOOLEAN NOT NULL,

    CONSTRAINT "unfinished_deletions_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "link_changes" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "changed_at" TIMESTAMPTZ(6) NOT NULL DEFAULT clock_timestamp(),
    "kind" TEXT NOT NULL,
    "operation" TEXT NOT NULL,
    "internal_id" UUID,
    "id_hash" TEXT,
    "run" TEXT,
    "counts" JSONB,
    "changed_by" TEXT NOT NULL,
    "reason" TEXT,

    CONSTRAINT "link_changes_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "forgotten_users" (
    "id_hash" BYTEA NOT NULL,
    "forgotten_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "forgotten_users_pkey" PRIMARY KEY ("id_hash")
);

-- CreateTable
CREATE TABLE "forgotten_users_key" (
    "key" BYTEA NOT NULL,

    CONSTRAINT "forgotten_users_key_pkey" PRIMARY KEY ("key")
);

-- CreateTable
-- A deletion of a row deletes its previous ids: the generated columns are foreign keys.
CREATE TABLE "previous_ids" (
    "kind" TEXT NOT NULL,
    "provider_id" VARCHAR(255) NOT NULL,
    "internal_id" UUID NOT NULL,
    "replaced_by" VARCHAR(255) NOT NULL,
    "run" VARCHAR(64) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "user_id" UUID GENERATED ALWAYS AS (CASE "kind" WHEN 'user' THEN "internal_id" END) STORED,
    "tenant_id" UUID GENERATED ALWAYS AS (CASE "kind" WHEN 'tenant' THEN "internal_id" END) STORED,

    CONSTRAINT "previous_ids_pkey" PRIMARY KEY ("kind", "provider_id")
);

-- CreateIndex
CREATE UNIQUE INDEX "tenants_identity_provider_organization_id_key" ON "tenants"("identity_provider_organization_id");

-- CreateIndex
CREATE INDEX "webhook_messages_received_at_idx" ON "webhook_messages"("received_at");

-- CreateIndex
CREATE INDEX "webhook_subjects_received_at_idx" ON "webhook_subjects"("received_at");

-- CreateIndex
CREATE INDEX "link_changes_internal_id_idx" ON "link_changes"("internal_id");

-- CreateIndex
CREATE INDEX "link_changes_id_hash_idx" ON "link_changes"("id_hash");

-- CreateIndex
CREATE INDEX "link_changes_run_idx" ON "link_changes"("run");

-- CreateIndex
CREATE INDEX "forgotten_users_expires_at_idx" ON "forgotten_users"("expires_at");

-- CreateIndex
CREATE INDEX "previous_ids_internal_id_idx" ON "previous_ids"("internal_id");

-- CreateIndex
CREATE INDEX "previous_ids_user_id_idx" ON "previous_ids"("user_id");

-- CreateIndex
CREATE INDEX "previous_ids_tenant_id_idx" ON "previous_ids"("tenant_id");

-- CreateIndex
CREATE INDEX "previous_ids_run_idx" ON "previous_ids"("run");

-- AddForeignKey
ALTER TABLE "previous_ids" ADD CONSTRAINT "previous_ids_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE NO ACTION;

-- AddForeignKey
ALTER TABLE "previous_ids" ADD CONSTRAINT "previous_ids_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE NO ACTION;

-- At most one row.
CREATE UNIQUE INDEX "forgotten_users_key_single_row" ON "forgotten_users_key" ((true));

-- 244 random bits.
INSERT INTO "forgotten_users_key"
SELECT decode(replace(concat(gen_random_uuid(), gen_random_uuid()), '-', ''), 'hex');

-- The roles that may read or insert users may do the same with tenants, so that `guardTenant` works after an upgrade, and may read
-- previous ids, for `show` and `check`.
DO $$
DECLARE
  granted record;
BEGIN
  FOR granted IN
    SELECT privilege_type AS privilege, grantee::regrole AS role FROM pg_class, aclexplode(relacl)
    WHERE oid = 'users'::regclass AND privilege_type IN ('SELECT', 'INSERT') AND grantee <> 0
  LOOP
    EXECUTE format('GRANT %s ON tenants TO %s', granted.privilege, granted.role);
    IF granted.privilege = 'SELECT' THEN
      EXECUTE format('GRANT SELECT ON previous_ids TO %s', granted.role);
    END IF;
  END LOOP;
END $$;

-- A kind is 'user' or 'tenant'. The role of the service may call the functions, but may read neither `forgotten_users` nor its key.
-- PL/pgSQL caches the plan of a query, which SQL functions of PostgreSQL 17 do not.

-- Returns the keyed hash of an id. Each kind has a key of its own, so the id of a user is never that of a tenant.
CREATE FUNCTION forgotten_hash(kind text, id text) RETURNS bytea
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  secret bytea;
BEGIN
  -- STRICT: fails without a key.
  SELECT CASE kind WHEN 'user' THEN key ELSE sha256(key || convert_to(kind, 'UTF8')) END INTO STRICT secret
  FROM public.forgotten_users_key;
  RETURN sha256(secret || sha256(secret || convert_to(id, 'UTF8')));
END $$;

-- Returns the key of the advisory lock of an id (see `forgotten_until`).
CREATE FUNCTION link_lock(kind text, id text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS
$$ SELECT pg_catalog.hashtextextended(id, CASE kind WHEN 'user' THEN 0 ELSE 1 END) $$;

-- Returns when the tenant of a present or previous id is to be deleted, or NULL.
CREATE FUNCTION tenant_deletion_due(organization text) RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT min(due_at) FROM public.pending_deletions
  WHERE kind = 'tenant' AND provider_id IN (organization, (
    SELECT tenants.identity_provider_organization_id FROM public.tenants
    JOIN public.previous_ids previous ON previous.tenant_id = tenants.id
    WHERE previous.kind = 'tenant' AND previous.provider_id = organization))
$$;

-- Returns the time until which an id is forgotten, or NULL. A tenant with a pending deletion is forgotten at once. A session token
-- that was issued after a user was forgotten may link the user again, and keeps the unfinished deletion from becoming pending again.
-- Allows for clocks that differ by 5 s.
--
-- The lock lasts until the end of the transaction. A deletion takes the exclusive lock before it stores the entry and deletes the
-- row. Therefore, an insert that calls this function has either committed before the deletion, which then sees its row, or waits
-- here and then finds the entry. The function is VOLATILE, because under READ COMMITTED each query of a volatile function sees
-- what was committed before that query, and not only before the insert.
CREATE FUNCTION forgotten_until(kind text, id text, issued_at timestamptz) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  hash bytea := public.forgotten_hash(kind, id);
  entry public.forgotten_users;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(public.link_lock(kind, id));
  SELECT * INTO entry FROM public.forgotten_users WHERE id_hash = hash AND expires_at > now();
  IF issued_at > entry.forgotten_at + interval '5 seconds' THEN
    entry.expires_at := NULL;
    UPDATE public.unfinished_deletions AS deletion SET is_due = false
    WHERE is_due AND deletion.kind = forgotten_until.kind AND forgotten_until.id = ANY (provider_ids);
  END IF;
  RETURN coalesce(entry.expires_at, CASE kind WHEN 'tenant' THEN public.tenant_deletion_due(id) END);
END $$;

-- Returns the internal ids of previous ids. The internal id is NULL if the previous id has expired, or the tenant has a pending
-- deletion. The role of the service needs no privilege on the table. The function is STABLE, so that it sees the same snapshot as
-- the query that calls it.
CREATE FUNCTION previous_links(kind text, ids text[]) RETURNS TABLE (provider_id text, internal_id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY
    SELECT previous.provider_id::text,
      CASE WHEN previous.expires_at > now()
        AND (previous.kind = 'user' OR public.tenant_deletion_due(previous.provider_id) IS NULL) THEN previous.internal_id END
    FROM public.previous_ids previous
    WHERE previous.kind = previous_links.kind AND previous.provider_id = ANY (ids);
END $$;

-- Also for databases whose owner has revoked the default privilege.
GRANT EXECUTE ON FUNCTION forgotten_hash(text, text), link_lock(text, text), tenant_deletion_due(text),
  forgotten_until(text, text, timestamptz), previous_links(text, text[]) TO PUBLIC;

-- Fails if the id of a new or changed row is a previous id, so that an id never has two internal ids. A registration whose lookup ran
-- before a relink moved the row repeats after this error, and then finds the row. The arguments are the kind and the id's column.
--
-- The unique key of the table makes the insert of a current id wait for a transaction that moves the row. The trigger runs after
-- that, and each query of a VOLATILE function sees what was committed before that query. At other isolation levels it does not, so
-- the primary key of `previous_ids` decides there.
CREATE FUNCTION reject_previous_id() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  new_id text := to_jsonb(NEW) ->> TG_ARGV[1];
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    INSERT INTO public.previous_ids VALUES (TG_ARGV[0], new_id, NEW.id, '', '', now());
    DELETE FROM public.previous_ids WHERE kind = TG_ARGV[0] AND provider_id = new_id;
  ELSIF EXISTS (SELECT FROM public.previous_ids WHERE kind = TG_ARGV[0] AND provider_id = new_id) THEN
    RAISE unique_violation USING MESSAGE = format('the id is a previous id of a %s', TG_ARGV[0]);
  END IF;
  RETURN NULL;
END $$;

-- A role with this privilege could create a trigger on a table of its own. Casts of that table would run as the owner.
REVOKE EXECUTE ON FUNCTION reject_previous_id() FROM PUBLIC;

CREATE TRIGGER users_reject_previous_id AFTER INSERT OR UPDATE OF identity_provider_user_id ON users
FOR EACH ROW EXECUTE FUNCTION reject_previous_id('user', 'identity_provider_user_id');

CREATE TRIGGER tenants_reject_previous_id AFTER INSERT OR UPDATE OF identity_provider_organization_id ON tenants
FOR EACH ROW EXECUTE FUNCTION reject_previous_id('tenant', 'identity_provider_organization_id');
