import { vi } from 'vitest';

// Files of one worker share what they load of packages; of the project, and of what a file mocks, each has its own.
vi.resetModules();
// What stands on the global object survives that.
globalThis.verifiedSessions = undefined;
