import { expect, test } from 'vitest';
import { openApiDocument } from '#lib/api/document';

test('lib/api/openapi.json matches the schemas (`npm run openapi` updates it)', async () => {
  await expect(`${JSON.stringify(openApiDocument(), null, 2)}\n`).toMatchFileSnapshot(
    '../../lib/api/openapi.json',
  );
});
