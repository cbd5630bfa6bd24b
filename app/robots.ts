import type { MetadataRoute } from 'next';
import { API_ROOTS } from '#lib/routing/routes';

/** GET /robots.txt: crawlers read the pages and leave the API alone. */
export default function robots(): MetadataRoute.Robots {
  return {
    rules: { userAgent: '*', allow: '/', disallow: [...API_ROOTS, '__clerk'].map((root) => `/${root}/`) },
  };
}
