import { vi } from 'vitest';

/**
 * Deletes the loaded modules of the project and the state of lib/base/process-state.ts, as in a new process. The npm packages
 * stay loaded.
 */
export function forgetModules(): void {
  vi.resetModules();
  for (const key of Object.getOwnPropertySymbols(globalThis))
    if (key.description?.startsWith('identity-link.')) Reflect.deleteProperty(globalThis, key);
}
