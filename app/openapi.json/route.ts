import { openApiDocument } from '#lib/api/document';
import { json, route } from '#lib/http/route';

/** GET /openapi.json: the API as an OpenAPI 3.1 document. */
export const GET = route(() => json(openApiDocument));
