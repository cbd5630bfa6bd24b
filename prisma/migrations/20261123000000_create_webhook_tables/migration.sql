-- CreateTable
CREATE TABLE "webhook_messages" (
    "id" VARCHAR(255) NOT NULL,
    "received_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "webhook_messages_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "webhook_subjects" (
    "id" TEXT NOT NULL,
    "applied_time" BIGINT NOT NULL,
    "received_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "webhook_subjects_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "webhook_messages_received_at_idx" ON "webhook_messages"("received_at");

-- CreateIndex
CREATE INDEX "webhook_subjects_received_at_idx" ON "webhook_subjects"("received_at");
