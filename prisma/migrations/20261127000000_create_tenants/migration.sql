-- CreateTable
CREATE TABLE "tenants" (
    "id" UUID NOT NULL,
    "identity_provider_organization_id" VARCHAR(255) NOT NULL,

    CONSTRAINT "tenants_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "tenants_identity_provider_organization_id_key" ON "tenants"("identity_provider_organization_id");

-- The roles that may read or insert users may do the same with tenants, so that `guardTenant` works after an upgrade.
DO $$
DECLARE
  granted record;
BEGIN
  FOR granted IN
    SELECT privilege_type AS privilege, grantee::regrole AS role FROM pg_class, aclexplode(relacl)
    WHERE oid = 'users'::regclass AND privilege_type IN ('SELECT', 'INSERT') AND grantee <> 0
  LOOP
    EXECUTE format('GRANT %s ON tenants TO %s', granted.privilege, granted.role);
  END LOOP;
END $$;
