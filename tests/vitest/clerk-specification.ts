import { takeDifferences } from 'clerk-emulator/testing';
import { afterAll, afterEach, expect } from 'vitest';

// Checks the responses of each emulator that a test starts with `checkResponse`. They must conform to the specification of
// the provider's APIs.

const expectNoDifference = () => {
  expect(takeDifferences(), 'responses that differ from the specification of Clerk').toEqual([]);
};

afterEach(expectNoDifference);
afterAll(expectNoDifference);
