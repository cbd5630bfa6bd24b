import type { ReactNode } from 'react';
import { CurrentUser } from './_ui/current-user';

/**
 * Frames the project pages. Each page checks the session itself, because Next.js does not run a layout again when only the
 * page changes.
 */
export default function ProjectsLayout({ children }: { children: ReactNode }) {
  return (
    <div className="shell">
      <CurrentUser />
      {children}
    </div>
  );
}
