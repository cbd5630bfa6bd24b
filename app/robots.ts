import type { MetadataRoute } from 'next';

/** GET /robots.txt: allows crawlers to read the pages, but not the API and the identity provider's API of the local stack. */
export default function robots(): MetadataRoute.Robots {
  return { rules: { userAgent: '*', allow: '/', disallow: ['/*/v1/', '/health/', '/__clerk/'] } };
}
