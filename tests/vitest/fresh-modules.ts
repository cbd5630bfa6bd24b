import { vi } from 'vitest';

// Test files of one worker share the packages that are already loaded, but each file loads the modules of the project
// again.
vi.resetModules();
