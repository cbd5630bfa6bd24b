import { takeDifferences } from 'clerk-emulator/testing';
import { afterAll, afterEach, expect } from 'vitest';

// Checks that every response of an emulator that a test starts conforms to the specification of the provider's APIs.

const expectNoDifference = () => {
  expect(takeDifferences(), 'responses that differ from the specification of Clerk').toEqual([]);
};

afterEach(expectNoDifference);
afterAll(expectNoDifference);
