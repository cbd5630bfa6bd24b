import { vi } from 'vitest';

// Vitest runs several test files in one worker. Before each file, these lines delete the loaded modules of the project and the
// state of lib/process-state.ts, so that the file does not get the state or the mocks of another file. The npm packages stay
// loaded.
vi.resetModules();
for (const key of Object.getOwnPropertySymbols(globalThis))
  if (key.description?.startsWith('identity-link.')) Reflect.deleteProperty(globalThis, key);
