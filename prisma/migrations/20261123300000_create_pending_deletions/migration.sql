-- CreateTable
CREATE TABLE "pending_deletions" (
    "identity_provider_user_id" VARCHAR(255) NOT NULL,
    "due_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "pending_deletions_pkey" PRIMARY KEY ("identity_provider_user_id")
);
