import { vi } from 'vitest';
import { forgetModules } from './forget-modules';

// Vitest runs several test files in one worker. No file gets the state, the mocks or the variables of another file.
forgetModules();
vi.unstubAllEnvs();
