import { vi } from 'vitest';

// Gives each test file its own modules of the project and its own mocks. Packages stay loaded for all files of a worker.
vi.resetModules();
// Resetting modules does not clear the global object.
globalThis.verifiedSessions = undefined;
