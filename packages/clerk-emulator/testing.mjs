import { tsImport } from 'tsx/esm/api';

export const { checkResponse, fixtures, foreignKeys, manualClock, signToken, takeDifferences, timers } =
  await tsImport('./src/testing.ts', { parentURL: import.meta.url, tsconfig: false });
