import { expect, test } from 'vitest';
import { openApiDocument } from '#lib/api/document';

test('lib/api/openapi.json, which `npm run openapi` updates, equals the document that openApiDocument() returns', async () => {
  await expect(`${JSON.stringify(openApiDocument(), null, 2)}\n`).toMatchFileSnapshot(
    '../../lib/api/openapi.json',
  );
});
