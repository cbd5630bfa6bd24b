import type { SentResponse } from '../observe';
import { differenceFromSpecification } from './specification/operations';

const differences = new Set<string>();

/** Compares a response of an emulator with Clerk's OpenAPI documents. Stores a difference for `takeDifferences`. */
export function checkResponse(response: SentResponse): void {
  const difference = differenceFromSpecification(response);
  if (difference !== undefined) differences.add(difference);
}

/** Returns the differences that `checkResponse` has found since the previous call of `takeDifferences`. */
export function takeDifferences(): string[] {
  const found = [...differences];
  differences.clear();
  return found;
}
