import { expect, test } from 'vitest';
import { EXCLUDED_SOURCES, FRONTEND_API, ownSources, sdkSources } from '../policy-sources';

test('The Content-Security-Policy of the service allows every source that the SDK requires, except the sources that the service excludes on purpose', async () => {
  const required = await sdkSources();
  expect(required).toContain(`connect-src ${FRONTEND_API}`);
  const allowed = [...ownSources(), ...EXCLUDED_SOURCES];
  expect(required.filter((source) => !allowed.includes(source))).toEqual([]);
});
