import type { SentResponse } from '../emulator';
import { differenceFromSpecification } from './specification/operations';

const differences = new Set<string>();

/** Checks a response of an emulator against the specification. A setup file of Vitest reports the differences. */
export function checkResponse(response: SentResponse): void {
  const difference = differenceFromSpecification(response);
  if (difference !== undefined) differences.add(difference);
}

/** Returns the differences since the last call. */
export function takeDifferences(): string[] {
  const found = [...differences];
  differences.clear();
  return found;
}
