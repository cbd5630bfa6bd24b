import { guardTenant } from '#lib/guard-tenant';
import { readJson } from '#lib/http/body';
import { json } from '#lib/http/route';
import { NoteText, readNote, writeNote } from '#lib/tables/project-notes';
import { parseProjectId } from '#lib/tables/projects';

interface Context {
  readonly params: Promise<{ projectId: string }>;
}

/** GET /projects/v1/projects/[projectId]/note: returns the caller's private note about the project, or null. */
export const GET = guardTenant(async (_request, caller, { params }: Context) => {
  const id = parseProjectId((await params).projectId);
  return json({ text: await readNote(caller, id) });
});

/** PUT /projects/v1/projects/[projectId]/note: stores the caller's private note about the project. */
export const PUT = guardTenant(async (request, caller, { params }: Context) => {
  const id = parseProjectId((await params).projectId);
  const { text } = await readJson(request, NoteText);
  await writeNote(caller, id, text);
  return json({ text });
});
