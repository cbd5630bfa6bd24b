import { json, route } from '#lib/http/route';
import document from '../../lib/api/openapi.json';

/** GET /openapi.json: the API as an OpenAPI 3.1 document. */
export const GET = route(() => json(document));
