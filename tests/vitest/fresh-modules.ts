import { vi } from 'vitest';

// Vitest runs several test files in one worker. This call makes each file load the modules of the project again, so that the
// file does not get the state or the mocks of another file. The npm packages stay loaded.
vi.resetModules();
