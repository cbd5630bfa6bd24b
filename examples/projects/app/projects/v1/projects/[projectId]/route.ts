import { guard } from '#lib/guard';
import { readJson } from '#lib/http/body';
import { json } from '#lib/http/route';
import { deleteProject, getProject, ProjectName, parseProjectId, renameProject } from '#lib/tables/projects';

interface Context {
  readonly params: Promise<{ projectId: string }>;
}

/** GET /projects/v1/projects/[projectId]: returns a project, or 404 if the caller is not a member. */
export const GET = guard(async (_request, { userId }, { params }: Context) => {
  const id = parseProjectId((await params).projectId);
  return json(await getProject(userId, id));
});

/** PATCH /projects/v1/projects/[projectId]: renames a project. Only an owner may do this. Other members get a 403. */
export const PATCH = guard(async (request, { userId }, { params }: Context) => {
  const id = parseProjectId((await params).projectId);
  const { name } = await readJson(request, ProjectName);
  return json(await renameProject(userId, id, name));
});

/** DELETE /projects/v1/projects/[projectId]: deletes a project. Only an owner may do this. Other members get a 403. */
export const DELETE = guard(async (_request, { userId }, { params }: Context) => {
  await deleteProject(userId, parseProjectId((await params).projectId));
  return new Response(null, { status: 204 });
});
