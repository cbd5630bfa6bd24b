import { expect, test } from 'vitest';
import { openApiDocument } from '#lib/api/document';

test('lib/api/openapi.json is what the schemas say; `npm run openapi` writes it', async () => {
  await expect(`${JSON.stringify(openApiDocument(), null, 2)}\n`).toMatchFileSnapshot(
    '../../lib/api/openapi.json',
  );
});
