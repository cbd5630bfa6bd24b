-- As before. A session token from after the deletion also keeps the unfinished deletion from becoming pending again.
CREATE OR REPLACE FUNCTION forgotten_until(kind text, id text, issued_at timestamptz) RETURNS timestamptz
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
