import type { ReactNode } from 'react';
import { OrganizationSwitcher } from '#lib/clerk/organizations';
import { Hydrated } from '../hydrated';

/**
 * Frames the project pages. Each page checks the session itself, because Next.js does not run a layout for each page. Without a
 * session, the switcher is empty. After a switch, the browser shows the projects of the organization.
 */
export default function ProjectsLayout({ children }: { children: ReactNode }) {
  return (
    <div className="shell">
      <Hydrated fallback={null}>
        <OrganizationSwitcher
          hidePersonal
          afterCreateOrganizationUrl="/projects"
          afterSelectOrganizationUrl="/projects"
        />
      </Hydrated>
      {children}
    </div>
  );
}
