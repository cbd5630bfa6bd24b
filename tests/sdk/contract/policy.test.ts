import { expect, test } from 'vitest';
import { EXCLUDED_SOURCES, FRONTEND_API, ownSources, sdkSources } from '../policy-sources';

test('The policy allows every source of the SDK that is not excluded by name', async () => {
  const theirs = await sdkSources();
  expect(theirs).toContain(`connect-src ${FRONTEND_API}`);
  const allowed = [...ownSources(), ...EXCLUDED_SOURCES];
  expect(theirs.filter((source) => !allowed.includes(source))).toEqual([]);
});
