import { vi } from 'vitest';

// Test files of one worker share the modules of packages, but each file has its own modules of the project.
vi.resetModules();
