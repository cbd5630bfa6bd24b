import { vi } from 'vitest';

// Test files of one worker share the packages that are already loaded. Each file loads the modules of the project again, so
// that it does not get the state or the mocks of another file.
vi.resetModules();
