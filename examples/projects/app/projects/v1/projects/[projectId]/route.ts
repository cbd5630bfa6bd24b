import { guardTenant } from '#lib/guard-tenant';
import { readJson } from '#lib/http/body';
import { json } from '#lib/http/route';
import { deleteProject, getProject, ProjectName, parseProjectId, renameProject } from '#lib/tables/projects';

interface Context {
  readonly params: Promise<{ projectId: string }>;
}

/** GET /projects/v1/projects/[projectId]: returns a project, or 404 if the caller is not a member. */
export const GET = guardTenant(async (_request, caller, { params }: Context) => {
  const id = parseProjectId((await params).projectId);
  return json(await getProject(caller, id));
});

/** PATCH /projects/v1/projects/[projectId]: renames a project. Only an owner may do this. Other members get a 403. */
export const PATCH = guardTenant(async (request, caller, { params }: Context) => {
  const id = parseProjectId((await params).projectId);
  const { name } = await readJson(request, ProjectName);
  return json(await renameProject(caller, id, name));
});

/** DELETE /projects/v1/projects/[projectId]: deletes a project. Only an owner may do this. Other members get a 403. */
export const DELETE = guardTenant(async (_request, caller, { params }: Context) => {
  await deleteProject(caller, parseProjectId((await params).projectId));
  return new Response(null, { status: 204 });
});
