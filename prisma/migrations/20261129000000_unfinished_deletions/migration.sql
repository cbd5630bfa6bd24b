-- CreateTable
CREATE TABLE "unfinished_deletions" (
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "kind" TEXT NOT NULL,
    "internal_id" UUID,
    "provider_ids" TEXT[],
    "is_due" BOOLEAN NOT NULL,

    CONSTRAINT "unfinished_deletions_pkey" PRIMARY KEY ("id")
);
