/** On SIGUSR2, ends the process that imports this module with exit code 7, as after a crash. */
process.on('SIGUSR2', () => process.exit(7));
