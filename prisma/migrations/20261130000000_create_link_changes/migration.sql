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

-- The roles that may schedule a deletion record it, so that an upgrade needs no other grant. They get no other right.
DO $$
DECLARE
  writer regrole;
BEGIN
  FOR writer IN
    SELECT DISTINCT grantee FROM pg_class, aclexplode(relacl)
    WHERE oid IN ('pending_deletions'::regclass, 'pending_tenant_deletions'::regclass)
      AND privilege_type = 'INSERT' AND grantee <> 0 AND grantee <> relowner
  LOOP
    EXECUTE format('GRANT INSERT ON link_changes TO %s', writer);
  END LOOP;
END $$;
