import { expect, test } from 'vitest';
import { EXCLUDED_SOURCES, FRONTEND_API, ownSources, sdkSources } from '../sdk/policy-sources';

test('The policy allows every source of the SDK that is not excluded by name', async () => {
  const theirs = await sdkSources();
  expect(theirs).toContain(`connect-src ${FRONTEND_API}`);
  const allowed = ownSources();
  const missing = theirs.filter((source) => !allowed.includes(source));
  expect(missing.toSorted()).toEqual(EXCLUDED_SOURCES.toSorted());
});
