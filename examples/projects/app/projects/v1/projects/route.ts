import { guard } from '#lib/guard';
import { readJson } from '#lib/http/body';
import { json } from '#lib/http/route';
import { createProject, listProjects, ProjectName, parseProjectId } from '#lib/tables/projects';

/** GET /projects/v1/projects: lists the caller's projects. For the next page, pass `next` of the response as `after`. */
export const GET = guard(async (request, { userId }) => {
  const after = request.nextUrl.searchParams.get('after');
  return json(await listProjects(userId, after === null ? undefined : parseProjectId(after)));
});

/** POST /projects/v1/projects: creates a project. The caller becomes its owner. */
export const POST = guard(async (request, { userId }) => {
  const { name } = await readJson(request, ProjectName);
  return json(await createProject(userId, name), 201);
});
