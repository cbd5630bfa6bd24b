import type { Metadata } from 'next';
import Link from 'next/link';
import { listProjects } from '#lib/tables/projects';
import { getTenant, getUser } from '#lib/user';
import { ProjectForm } from './_ui/project-form';
import { createProject } from './actions';

export const metadata: Metadata = { title: 'Projects' };

/**
 * Shows the first page of the user's projects in the active organization. Asks a visitor without a session to sign in, and a user
 * without an active organization to choose one.
 */
export default async function ProjectsPage() {
  const tenant = await getTenant();
  if (!tenant) {
    return (
      <>
        <h1>Projects</h1>
        {(await getUser()) ? (
          <p>Choose an organization to see its projects.</p>
        ) : (
          <Link href="/sign-in?redirect_url=%2Fprojects">Sign in to see your projects</Link>
        )}
      </>
    );
  }
  const { projects } = await listProjects(tenant);
  return (
    <>
      <h1>Projects</h1>
      <ul>
        {projects.map(({ id, name, role }) => (
          <li key={id}>
            <Link href={`/projects/${id}`}>{name}</Link> ({role})
          </li>
        ))}
      </ul>
      <ProjectForm action={createProject} label="Name" name="name" button="Create" />
    </>
  );
}
