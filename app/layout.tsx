// The first import, so that the styles of components override the global ones.
import './globals.css';
import type { Metadata, Viewport } from 'next';
import Link from 'next/link';
import type { ReactNode } from 'react';
import { SiteHeader } from './_ui/site-header';
import ui from './_ui/ui.module.css';

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
        <footer className={ui['footer']}>
          <div className={`shell ${ui['foot']}`}>
            <p>Identity link: one internal id for every user of your identity provider.</p>
            <Link href="/docs" prefetch={false}>
              API
            </Link>
          </div>
        </footer>
      </body>
    </html>
  );
}
