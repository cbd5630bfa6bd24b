// A worker whose vitest was killed would go on with its tests, and keep alive what they started.
process.once('disconnect', () => process.exit(1));
