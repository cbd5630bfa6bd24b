import type { Metadata } from 'next';
import { notFound } from 'next/navigation';
import { HttpError } from '#lib/http/error';
import { getProject, listMembers, parseProjectId } from '#lib/tables/projects';
import { getTenant, requireUser } from '#lib/user';
import { ProjectForm } from '../_ui/project-form';
import { addMember, renameProject } from '../actions';

export const metadata: Metadata = { title: 'Project' };

/** Returns a project and its members. Shows the 404 page if the active organization has no such project of the user. */
async function readProject(id: string) {
  const tenant = await getTenant();
  if (!tenant) notFound();
  try {
    const projectId = parseProjectId(id);
    return { ...(await getProject(tenant, projectId)), members: await listMembers(tenant, projectId) };
  } catch (error) {
    if (error instanceof HttpError && error.status === 404) notFound();
    throw error;
  }
}

/** Shows a project. A visitor without a session is redirected to the sign-in page, which leads back to the project. */
export default async function ProjectPage({ params }: { params: Promise<{ id: string }> }) {
  await requireUser();
  const { id, name, role, members } = await readProject((await params).id);
  return (
    <>
      <h1>{name}</h1>
      <ul>
        {members.map((member) => (
          <li key={member.userId}>
            <code>{member.userId}</code> ({member.role})
          </li>
        ))}
      </ul>
      {role === 'owner' ? (
        <>
          <ProjectForm action={renameProject} label="New name" name="name" button="Rename" projectId={id} />
          <ProjectForm action={addMember} label="User id" name="user" button="Add" projectId={id} />
        </>
      ) : null}
    </>
  );
}
