import { forgetModules } from './forget-modules';

// Vitest runs several test files in one worker. No file gets the state or the mocks of another file.
forgetModules();
