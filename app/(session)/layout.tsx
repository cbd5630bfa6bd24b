import { headers } from 'next/headers';
import type { ReactNode } from 'react';
import { browserSettings } from '#lib/clerk/browser-settings';
import { ClerkProvider } from '#lib/clerk/components';
import { clerkAppearance } from './clerk-appearance';

/** Loads the identity provider's browser SDK for the pages that show its components. The other pages do not load it. */
export default async function SessionLayout({ children }: { children: ReactNode }) {
  const nonce = (await headers()).get('x-nonce') ?? '';
  return (
    <ClerkProvider
      dynamic
      nonce={nonce}
      {...browserSettings()}
      telemetry={false}
      appearance={clerkAppearance}
      signInUrl="/sign-in"
      signUpUrl="/sign-up"
      signInFallbackRedirectUrl="/account"
      signUpFallbackRedirectUrl="/account"
      afterSignOutUrl="/"
    >
      {children}
    </ClerkProvider>
  );
}
