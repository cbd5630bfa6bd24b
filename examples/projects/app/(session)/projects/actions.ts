'use server';

import { revalidatePath } from 'next/cache';
import { redirect } from 'next/navigation';
import * as z from 'zod/mini';
import { guardAction } from '#lib/guard-action';
import { HttpError } from '#lib/http/error';
import * as projects from '#lib/tables/projects';
import { getTenant } from '#lib/user';

/** Id of a project in a hidden field. A client can send any id, so the functions of `projects` check the user's role. */
const ProjectId = z.object({ projectId: z.uuid('Unknown project') });

/** Returns the user in the active organization. Throws a 403 without an active organization. */
async function requireTenant() {
  const tenant = await getTenant();
  if (!tenant) throw new HttpError(403, 'Choose an organization');
  return tenant;
}

/** Creates a project and redirects to its page. Works without JavaScript. */
export const createProject = guardAction(projects.ProjectName, async ({ name }): Promise<null> => {
  const { id } = await projects.createProject(await requireTenant(), name);
  redirect(`/projects/${id}`);
});

export const renameProject = guardAction(
  z.extend(projects.ProjectName, ProjectId.shape),
  async ({ projectId, name }) => {
    const project = await projects.renameProject(await requireTenant(), projectId, name);
    revalidatePath('/projects', 'layout');
    return project;
  },
);

export const addMember = guardAction(
  z.extend(projects.NewMember, ProjectId.shape),
  async ({ projectId, user }) => {
    const member = await projects.addMember(await requireTenant(), projectId, user);
    revalidatePath('/projects', 'layout');
    return member;
  },
);
