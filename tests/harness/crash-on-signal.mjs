/** Makes the process that it is imported into crash at a signal. */
process.on('SIGUSR2', () => process.exit(7));
