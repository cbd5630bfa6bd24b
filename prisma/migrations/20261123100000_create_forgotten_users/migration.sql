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

-- CreateIndex
CREATE INDEX "forgotten_users_expires_at_idx" ON "forgotten_users"("expires_at");

-- Allows at most one row in forgotten_users_key.
CREATE UNIQUE INDEX "forgotten_users_key_single_row" ON "forgotten_users_key" ((true));

-- Inserts the key. It has 244 random bits, 122 from each UUID.
INSERT INTO "forgotten_users_key"
SELECT decode(replace(concat(gen_random_uuid(), gen_random_uuid()), '-', ''), 'hex');

-- Returns the keyed hash of an identity-provider user id. The role of the service may call the two functions of this file, but
-- may not read the two tables. The functions are in PL/pgSQL, because it caches the plans of queries. SQL functions of
-- PostgreSQL 17 do not cache plans.
CREATE FUNCTION forgotten_user_hash(user_id text) RETURNS bytea
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  hash bytea;
BEGIN
  -- INTO STRICT fails if there is no key.
  SELECT sha256(key || sha256(key || convert_to(user_id, 'UTF8'))) INTO STRICT hash FROM public.forgotten_users_key;
  RETURN hash;
END $$;

-- A user is forgotten if an operator has deleted the user. Returns the time until which an identity-provider user is forgotten,
-- or NULL if the user is not forgotten. Also returns NULL if the session token of `issued_at` was issued after the deletion,
-- because that token may link the user again. The clocks of the provider and of the database may differ by 5 s.
--
-- The function takes a shared lock, which lasts until the end of the transaction. `users:forget` takes the exclusive lock
-- before it stores the entry and deletes the row. If an insert that calls this function gets the lock first, it commits before
-- the deletion, and the deletion sees the new row. If `users:forget` gets the lock first, the insert waits here and then finds
-- the entry.
--
-- The function is VOLATILE. Under READ COMMITTED, each query of a volatile function sees all rows that were committed before
-- the query starts. The query of a STABLE function would see only rows that were committed before the insert started.
CREATE FUNCTION forgotten_until(user_id text, issued_at timestamptz) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  hash bytea := public.forgotten_user_hash(user_id);
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended(user_id, 0));
  RETURN (
    SELECT entry.expires_at FROM public.forgotten_users entry
    WHERE entry.id_hash = hash AND entry.expires_at > now()
      AND (issued_at IS NULL OR issued_at <= entry.forgotten_at + interval '5 seconds')
  );
END $$;

-- By default, PUBLIC has this privilege. The owner of a database may have revoked the default.
GRANT EXECUTE ON FUNCTION forgotten_user_hash(text), forgotten_until(text, timestamptz) TO PUBLIC;
