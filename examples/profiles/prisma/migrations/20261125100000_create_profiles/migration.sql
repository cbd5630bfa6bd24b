-- CreateTable
CREATE TABLE "profiles" (
    "user_id" UUID NOT NULL,
    "email" TEXT,
    "first_name" TEXT,
    "last_name" TEXT,
    "image_url" TEXT,

    CONSTRAINT "profiles_pkey" PRIMARY KEY ("user_id")
);

-- AddForeignKey
ALTER TABLE "profiles" ADD CONSTRAINT "profiles_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- The role of the service. Test databases and previews do not have this role.
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'identity_link_service') THEN
        GRANT SELECT, INSERT, UPDATE ON "profiles" TO identity_link_service;
    END IF;
END $$;
