'use server';

import { revalidatePath } from 'next/cache';
import { redirect } from 'next/navigation';
import * as z from 'zod/mini';
import { guardAction } from '#lib/guard-action';
import * as projects from '#lib/tables/projects';

/** Id of a project in a hidden field. A client can send any id, so the functions of `projects` check the user's role. */
const ProjectId = z.object({ projectId: z.uuid('Unknown project') });

/** Creates a project and redirects to its page. Works without JavaScript. */
export const createProject = guardAction(
  projects.ProjectName,
  async ({ name }, { userId }): Promise<null> => {
    const { id } = await projects.createProject(userId, name);
    redirect(`/projects/${id}`);
  },
);

export const renameProject = guardAction(
  z.extend(projects.ProjectName, ProjectId.shape),
  async ({ projectId, name }, { userId }) => {
    const project = await projects.renameProject(userId, projectId, name);
    revalidatePath('/projects', 'layout');
    return project;
  },
);

export const addMember = guardAction(
  z.extend(projects.NewMember, ProjectId.shape),
  async ({ projectId, user }, { userId }) => {
    const member = await projects.addMember(userId, projectId, user);
    revalidatePath('/projects', 'layout');
    return member;
  },
);
