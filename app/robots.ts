import type { MetadataRoute } from 'next';
import { API_ROOTS } from '#lib/routing/routes';

/**
 * GET /robots.txt: allows crawlers to read the pages. Disallows the API and the paths under `/__clerk`. Under `npm run dev`
 * and `npm run preview`, an emulator of the identity provider serves these paths, and the service forwards the requests.
 */
export default function robots(): MetadataRoute.Robots {
  return {
    rules: { userAgent: '*', allow: '/', disallow: [...API_ROOTS, '__clerk'].map((root) => `/${root}/`) },
  };
}
