import type { MetadataRoute } from 'next';
import { API_ROOTS } from '#lib/routing/routes';

/** GET /robots.txt: crawlers may read the pages, but neither the API nor `/__clerk`, the proxy of the local stack. */
export default function robots(): MetadataRoute.Robots {
  return {
    rules: { userAgent: '*', allow: '/', disallow: [...API_ROOTS, '__clerk'].map((root) => `/${root}/`) },
  };
}
