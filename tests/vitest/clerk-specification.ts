import { takeDifferences } from 'clerk-emulator/testing';
import { afterAll, afterEach, expect } from 'vitest';

// An emulator with the option `onResponse: checkResponse` compares each response with the specification of the provider's APIs.
// These hooks fail a test that caused a difference.

const expectNoDifference = () => {
  expect(takeDifferences(), 'responses that differ from the specification of Clerk').toEqual([]);
};

afterEach(expectNoDifference);
afterAll(expectNoDifference);
