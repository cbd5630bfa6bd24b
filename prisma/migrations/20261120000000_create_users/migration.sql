-- CreateTable
CREATE TABLE "users" (
    "id" UUID NOT NULL,
    "identity_provider_user_id" VARCHAR(255) NOT NULL,

    CONSTRAINT "users_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "users_identity_provider_user_id_key" ON "users"("identity_provider_user_id");
