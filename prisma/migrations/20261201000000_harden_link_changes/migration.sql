-- A role that may insert into the history sets neither the time nor the counts of a row.
DO $$
DECLARE
  writer regrole;
BEGIN
  FOR writer IN
    SELECT grantee FROM pg_class, aclexplode(relacl)
    WHERE oid = 'link_changes'::regclass AND privilege_type = 'INSERT' AND grantee <> 0 AND grantee <> relowner
  LOOP
    EXECUTE format('REVOKE INSERT ON link_changes FROM %s', writer);
    EXECUTE format('GRANT INSERT (kind, operation, internal_id, id_hash, run, changed_by, reason) ON link_changes TO %s', writer);
  END LOOP;
END $$;

-- CreateIndex
CREATE INDEX "link_changes_internal_id_idx" ON "link_changes"("internal_id");

-- CreateIndex
CREATE INDEX "link_changes_id_hash_idx" ON "link_changes"("id_hash");

-- CreateIndex
CREATE INDEX "link_changes_run_idx" ON "link_changes"("run");
