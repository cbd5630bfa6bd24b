// Ends a worker whose Vitest process was killed. Otherwise its tests, and the processes that they started, would keep
// running.
process.once('disconnect', () => process.exit(1));
