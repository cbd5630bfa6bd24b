'use client';

import { type ReactNode, useSyncExternalStore } from 'react';

const never = () => () => {};

/**
 * Renders `children` in place of `fallback` once React has hydrated the page. The server renders the fallback. What depends on
 * whether the identity provider's browser SDK has loaded belongs here, because the SDK may load before React hydrates.
 */
export function Hydrated({ children, fallback }: { children: ReactNode; fallback: ReactNode }) {
  const isHydrated = useSyncExternalStore(
    never,
    () => true,
    () => false,
  );
  return isHydrated ? children : fallback;
}
