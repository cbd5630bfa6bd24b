// Simulates a crash: the process that imports this module exits with code 7 when it receives SIGUSR2.
process.on('SIGUSR2', () => process.exit(7));
