/** Makes the process that imports this module crash on SIGUSR2. */
process.on('SIGUSR2', () => process.exit(7));
