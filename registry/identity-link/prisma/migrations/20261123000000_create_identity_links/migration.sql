CREATE TABLE "identity_links" (
    "user_id" UUID NOT NULL PRIMARY KEY,
    "identity_provider_user_id" VARCHAR(255) NOT NULL
);
CREATE UNIQUE INDEX "identity_links_identity_provider_user_id_key" ON "identity_links"("identity_provider_user_id");
