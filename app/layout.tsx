// The first import, so that the styles of components override the global ones.
import './globals.css';
import type { Metadata, Viewport } from 'next';
import type { ReactNode } from 'react';
import { SiteFooter } from './_ui/site-footer';
import { SiteHeader } from './_ui/site-header';

export const metadata: Metadata = {
  title: { default: 'Identity link', template: '%s · Identity link' },
  description:
    'One internal id for every user of your identity provider. The id is created once, by the first request or the webhook.',
  applicationName: 'Identity link',
  formatDetection: { telephone: false, email: false, address: false },
};

export const viewport: Viewport = {
  colorScheme: 'light dark',
  themeColor: [
    { media: '(prefers-color-scheme: light)', color: '#fafaf8' },
    { media: '(prefers-color-scheme: dark)', color: '#121315' },
  ],
};

/** Renders every page per request, because the header shows the session, and the CSP nonce is unknown at build time. */
export default function RootLayout({ children }: { children: ReactNode }) {
  return (
    <html lang="en">
      <body>
        <a className="button skip-link" href="#main">
          Skip to content
        </a>
        <SiteHeader />
        <main id="main" tabIndex={-1}>
          {children}
        </main>
        <SiteFooter />
      </body>
    </html>
  );
}
