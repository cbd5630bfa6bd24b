import { guardTenant } from '#lib/guard-tenant';
import { readJson } from '#lib/http/body';
import { json } from '#lib/http/route';
import { addMember, listMembers, NewMember, parseProjectId } from '#lib/tables/projects';

interface Context {
  readonly params: Promise<{ projectId: string }>;
}

/** GET /projects/v1/projects/[projectId]/members: lists the members of a project. The caller must be a member. */
export const GET = guardTenant(async (_request, caller, { params }: Context) => {
  const id = parseProjectId((await params).projectId);
  return json({ members: await listMembers(caller, id) });
});

/**
 * POST /projects/v1/projects/[projectId]/members: adds a user by internal id or identity-provider id. Only an owner may do
 * this. Other members get a 403.
 */
export const POST = guardTenant(async (request, caller, { params }: Context) => {
  const id = parseProjectId((await params).projectId);
  const { user } = await readJson(request, NewMember);
  return json(await addMember(caller, id, user), 201);
});
