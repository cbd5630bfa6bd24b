import { guardTenant } from '#lib/guard-tenant';
import { readJson } from '#lib/http/body';
import { json } from '#lib/http/route';
import { createProject, listProjects, ProjectName, parseProjectId } from '#lib/tables/projects';

/** GET /projects/v1/projects: lists the caller's projects. For the next page, pass `next` of the response as `after`. */
export const GET = guardTenant(async (request, caller) => {
  const after = request.nextUrl.searchParams.get('after');
  return json(await listProjects(caller, after === null ? undefined : parseProjectId(after)));
});

/** POST /projects/v1/projects: creates a project. The caller becomes its owner. */
export const POST = guardTenant(async (request, caller) => {
  const { name } = await readJson(request, ProjectName);
  return json(await createProject(caller, name), 201);
});
