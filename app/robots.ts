import type { MetadataRoute } from 'next';

/** GET /robots.txt: crawlers read the pages and leave the API alone. */
export default function robots(): MetadataRoute.Robots {
  return {
    rules: { userAgent: '*', allow: '/', disallow: ['/auth/', '/users/', '/webhooks/', '/__clerk/'] },
  };
}
