// The sources are TypeScript. `tsImport` compiles only the modules of this import, not other modules of the process.
import { tsImport } from 'tsx/esm/api';

export const { generateSigningKeyPem, newId, prefetchClerkJs, signingKey, startEmulator } = await tsImport(
  './src/index.ts',
  { parentURL: import.meta.url, tsconfig: false },
);
