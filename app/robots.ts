import type { MetadataRoute } from 'next';
import { API_ROOTS } from '#lib/routing/routes';

/** GET /robots.txt: crawlers may read the pages, but not the API. */
export default function robots(): MetadataRoute.Robots {
  return {
    rules: { userAgent: '*', allow: '/', disallow: [...API_ROOTS, '__clerk'].map((root) => `/${root}/`) },
  };
}
