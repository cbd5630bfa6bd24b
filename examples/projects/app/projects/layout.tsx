import type { ReactNode } from 'react';

/** Frames the project pages. Each page checks the session itself, because Next.js does not run a layout for each page. */
export default function ProjectsLayout({ children }: { children: ReactNode }) {
  return <div className="shell">{children}</div>;
}
