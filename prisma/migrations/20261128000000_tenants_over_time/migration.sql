-- Tenants get previous ids, tombstones and pending deletions, as users have. The functions with a kind ('user' or 'tenant')
-- replace those without, which the version before this migration calls.

-- CreateTable
CREATE TABLE "previous_tenant_ids" (
    "identity_provider_organization_id" VARCHAR(255) NOT NULL,
    "tenant_id" UUID NOT NULL,
    "replaced_by" VARCHAR(255) NOT NULL,
    "run" VARCHAR(64) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "previous_tenant_ids_pkey" PRIMARY KEY ("identity_provider_organization_id")
);

-- CreateTable
CREATE TABLE "pending_tenant_deletions" (
    "identity_provider_organization_id" VARCHAR(255) NOT NULL,
    "due_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "pending_tenant_deletions_pkey" PRIMARY KEY ("identity_provider_organization_id")
);

-- CreateIndex
CREATE INDEX "previous_tenant_ids_tenant_id_idx" ON "previous_tenant_ids"("tenant_id");

-- CreateIndex
CREATE INDEX "previous_tenant_ids_run_idx" ON "previous_tenant_ids"("run");

-- AddForeignKey
ALTER TABLE "previous_tenant_ids" ADD CONSTRAINT "previous_tenant_ids_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Each role has the same rights to a new table as to the table for users.
DO $$
DECLARE
  granted record;
BEGIN
  FOR granted IN
    SELECT privilege_type AS privilege, target, grantee::regrole AS role
    FROM (VALUES ('previous_ids', 'previous_tenant_ids'), ('pending_deletions', 'pending_tenant_deletions')) AS tables (source, target)
    JOIN pg_class ON oid = source::regclass, aclexplode(relacl)
    WHERE grantee <> 0 AND grantee <> relowner
  LOOP
    EXECUTE format('GRANT %s ON %I TO %s', granted.privilege, granted.target, granted.role);
  END LOOP;
END $$;

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

-- Returns the key of the advisory lock of an id (see the function without a kind in create_forgotten_users).
CREATE FUNCTION link_lock(kind text, id text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS
$$ SELECT pg_catalog.hashtextextended(id, CASE kind WHEN 'user' THEN 0 ELSE 1 END) $$;

-- Returns when the tenant of a present or previous id is to be deleted, or NULL.
CREATE FUNCTION tenant_deletion_due(organization text) RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT min(due_at) FROM public.pending_tenant_deletions
  WHERE identity_provider_organization_id IN (organization, (
    SELECT tenants.identity_provider_organization_id FROM public.tenants
    JOIN public.previous_tenant_ids previous ON previous.tenant_id = tenants.id
    WHERE previous.identity_provider_organization_id = organization))
$$;

-- Returns the time until which an id is forgotten, or NULL. A tenant with a pending deletion is forgotten at once.
CREATE FUNCTION forgotten_until(kind text, id text, issued_at timestamptz) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  hash bytea := public.forgotten_hash(kind, id);
BEGIN
  PERFORM pg_advisory_xact_lock_shared(public.link_lock(kind, id));
  RETURN coalesce(
    (SELECT entry.expires_at FROM public.forgotten_users entry
     WHERE entry.id_hash = hash AND entry.expires_at > now()
       AND (issued_at IS NULL OR issued_at <= entry.forgotten_at + interval '5 seconds')),
    CASE kind WHEN 'tenant' THEN public.tenant_deletion_due(id) END);
END $$;

-- Returns the internal ids of previous ids. The internal id is NULL if the previous id has expired, or the tenant has a pending
-- deletion.
CREATE FUNCTION previous_links(kind text, ids text[]) RETURNS TABLE (provider_id text, internal_id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF kind = 'user' THEN
    RETURN QUERY SELECT * FROM public.previous_links(ids);
  ELSE
    RETURN QUERY
      SELECT identity_provider_organization_id::text,
        CASE WHEN expires_at > now() AND public.tenant_deletion_due(identity_provider_organization_id) IS NULL THEN tenant_id END
      FROM public.previous_tenant_ids WHERE identity_provider_organization_id = ANY (ids);
  END IF;
END $$;

-- Also for databases whose owner has revoked the default privilege.
GRANT EXECUTE ON FUNCTION forgotten_hash(text, text), link_lock(text, text), tenant_deletion_due(text),
  forgotten_until(text, text, timestamptz), previous_links(text, text[]) TO PUBLIC;

-- Fails if the id of a new or changed tenant is a previous id, as reject_previous_id() does for users.
CREATE FUNCTION reject_previous_tenant_id() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  new_id text := NEW.identity_provider_organization_id;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    INSERT INTO public.previous_tenant_ids VALUES (new_id, NEW.id, '', '', now());
    DELETE FROM public.previous_tenant_ids WHERE identity_provider_organization_id = new_id;
  ELSIF EXISTS (SELECT FROM public.previous_tenant_ids WHERE identity_provider_organization_id = new_id) THEN
    RAISE unique_violation USING MESSAGE = 'the id is a previous id of a tenant';
  END IF;
  RETURN NULL;
END $$;

REVOKE EXECUTE ON FUNCTION reject_previous_tenant_id() FROM PUBLIC;

CREATE TRIGGER tenants_reject_previous_id AFTER INSERT OR UPDATE OF identity_provider_organization_id ON tenants
FOR EACH ROW EXECUTE FUNCTION reject_previous_tenant_id();
