import type { Metadata } from 'next';
import Link from 'next/link';
import { listProjects } from '#lib/tables/projects';
import { getUser } from '#lib/user';
import { ProjectForm } from './_ui/project-form';
import { createProject } from './actions';

export const metadata: Metadata = { title: 'Projects' };

/** Shows the first page of the user's projects, or a link to the sign-in page for a visitor without a session. */
export default async function ProjectsPage() {
  const user = await getUser();
  if (!user) {
    return (
      <>
        <h1>Projects</h1>
        <Link href="/sign-in?redirect_url=%2Fprojects">Sign in to see your projects</Link>
      </>
    );
  }
  const { projects } = await listProjects(user.userId);
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
