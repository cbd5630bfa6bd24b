// The package contains TypeScript. tsx compiles it when it is imported, without an effect on other modules of the process.
import { tsImport } from 'tsx/esm/api';

export const { generateSigningKeyPem, newId, prefetchClerkJs, signingKey, startEmulator } = await tsImport(
  './src/index.ts',
  { parentURL: import.meta.url, tsconfig: false },
);
