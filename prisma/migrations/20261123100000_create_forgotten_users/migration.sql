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

-- At most one row.
CREATE UNIQUE INDEX "forgotten_users_key_single_row" ON "forgotten_users_key" ((true));

-- 244 random bits.
INSERT INTO "forgotten_users_key"
SELECT decode(replace(concat(gen_random_uuid(), gen_random_uuid()), '-', ''), 'hex');

-- Returns the keyed hash of an identity-provider user id. The role of the service may call both functions, but may read
-- neither table. PL/pgSQL caches the plan of a query, which SQL functions of PostgreSQL 17 do not.
CREATE FUNCTION forgotten_user_hash(user_id text) RETURNS bytea
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  hash bytea;
BEGIN
  -- STRICT: fails without a key.
  SELECT sha256(key || sha256(key || convert_to(user_id, 'UTF8'))) INTO STRICT hash FROM public.forgotten_users_key;
  RETURN hash;
END $$;

-- Returns the time until which an identity-provider user is forgotten, or NULL. A session token that was issued after the
-- user was forgotten may link the user again. Allows for clocks that differ by 5 s.
--
-- The lock lasts until the end of the transaction. `users:forget` takes the exclusive lock before it stores the entry and
-- deletes the row. Therefore, an insert that calls this function has either committed before the deletion, which then
-- sees its row, or waits here and then finds the entry. The function is VOLATILE, because under READ COMMITTED each query
-- of a volatile function sees what was committed before that query, and not only before the insert.
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

-- Also for databases whose owner has revoked the default privilege.
GRANT EXECUTE ON FUNCTION forgotten_user_hash(text), forgotten_until(text, timestamptz) TO PUBLIC;
