import type { MetadataRoute } from 'next';
import { API_ROOTS } from '#lib/routing/routes';

/**
 * GET /robots.txt: allows crawlers to read the pages. Disallows the API of the service, and the paths under `/__clerk`. Under
 * `npm run dev` and `npm run preview`, the service forwards these paths to the API of an emulated identity provider.
 */
export default function robots(): MetadataRoute.Robots {
  return {
    rules: { userAgent: '*', allow: '/', disallow: [...API_ROOTS, '__clerk'].map((root) => `/${root}/`) },
  };
}
