// Ends this Vitest worker when it loses the connection to the main process of Vitest, for example because that process was
// killed. Otherwise the tests of the worker would keep running, and so would the processes that these tests started.
process.once('disconnect', () => process.exit(1));
