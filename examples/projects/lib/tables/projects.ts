import { v7 as uuidV7 } from 'uuid';
import * as z from 'zod/mini';
import { text } from '../api/text';
import { HttpError } from '../http/error';
import { withConstraintErrors } from '../storage/constraint-error';
import { database, type Transaction } from '../storage/database';

/** A project as a member sees it. */
export interface Project {
  readonly id: string;
  readonly name: string;
  /** Role of this member. */
  readonly role: 'owner' | 'member';
}

type Member = Pick<Project, 'role'> & { readonly userId: string };

export const MAX_NAME_LENGTH = 100;
export const PAGE_SIZE = 20;

/** Schema of a request body and of a form. `text` accepts only strings that PostgreSQL can store. */
export const ProjectName = z.object({ name: text('name', MAX_NAME_LENGTH) }, 'Expected a JSON object');
/** An internal user id or a user id of the identity provider. */
export const NewMember = z.object({ user: text('user', 255) }, 'Expected a JSON object');

/** Parses the id of a project. Throws a 404 if the id is not a UUID, because PostgreSQL would reject it with an error. */
export function parseProjectId(id: string): string {
  const parsed = z.uuid().safeParse(id);
  if (!parsed.success) throw new HttpError(404, 'Not found');
  return parsed.data;
}

const shown = { role: true, project: { select: { id: true, name: true } } } as const;

/**
 * Returns a page of the user's projects in the order of the project ids. `next` is the value of `after` for the next page, or
 * null on the last page.
 */
export async function listProjects(
  userId: string,
  after?: string,
): Promise<{ projects: Project[]; next: string | null }> {
  const rows = await database().projectMember.findMany({
    where: { userId, ...(after === undefined ? {} : { projectId: { gt: after } }) },
    orderBy: { projectId: 'asc' },
    take: PAGE_SIZE + 1,
    select: shown,
  });
  const projects = rows.slice(0, PAGE_SIZE).map(({ role, project }) => ({ ...project, role }));
  return { projects, next: rows.length > PAGE_SIZE ? (projects.at(-1)?.id ?? null) : null };
}

/** Creates a project with the user as its owner. The project and the membership are committed together. */
export function createProject(userId: string, name: string): Promise<Project> {
  const id = uuidV7();
  const creating = database().project.create({
    data: { id, name, members: { create: { userId, role: 'owner' } } },
  });
  return withConstraintErrors(creating.then(() => ({ id, name, role: 'owner' })));
}

/** Returns a project and the user's role. Throws a 404 if the project does not exist or the user is not a member. */
export async function getProject(userId: string, projectId: string): Promise<Project> {
  const row = await database().projectMember.findUnique({
    where: { projectId_userId: { projectId, userId } },
    select: shown,
  });
  if (row === null) throw new HttpError(404, 'Not found');
  return { ...row.project, role: row.role };
}

/** Throws a 404 if the user is not a member or the project does not exist. Throws a 403 if the member's role is not `owner`. */
async function requireOwner(userId: string, projectId: string): Promise<void> {
  const { role } = await getProject(userId, projectId);
  if (role !== 'owner') throw new HttpError(403, 'Only an owner may do this');
}

/** Renames a project. The user must be an owner of the project. */
export async function renameProject(userId: string, projectId: string, name: string): Promise<Project> {
  await requireOwner(userId, projectId);
  await withConstraintErrors(database().project.update({ where: { id: projectId }, data: { name } }));
  return { id: projectId, name, role: 'owner' };
}

/** Deletes a project. ON DELETE CASCADE deletes its memberships and notes. The user must be an owner of the project. */
export async function deleteProject(userId: string, projectId: string): Promise<void> {
  await requireOwner(userId, projectId);
  await withConstraintErrors(database().project.delete({ where: { id: projectId } }));
}

/**
 * Returns up to 100 members of a project, owners first. The user must be a member of the project. PostgreSQL sorts the roles
 * in the order of the enum `project_role`, and its first value is `owner`.
 */
export async function listMembers(userId: string, projectId: string): Promise<Member[]> {
  await getProject(userId, projectId);
  return database().projectMember.findMany({
    where: { projectId },
    orderBy: [{ role: 'asc' }, { userId: 'asc' }],
    take: 100,
    select: { userId: true, role: true },
  });
}

/** Finds a user by internal id or, if no user has this internal id, by identity-provider id. Returns the internal id. */
async function findUserId(eitherId: string): Promise<string | undefined> {
  const internal = z.uuid().safeParse(eitherId.toLowerCase()).data;
  const users = await database().user.findMany({
    where: { OR: [{ identityProviderUserId: eitherId }, ...(internal ? [{ id: internal }] : [])] },
    select: { id: true },
  });
  return (users.find(({ id }) => id === internal) ?? users[0])?.id;
}

/** Adds a colleague to a project. Throws a 404 if the colleague is unknown, and a 409 if the colleague is a member. */
export async function addMember(userId: string, projectId: string, eitherId: string): Promise<Member> {
  await requireOwner(userId, projectId);
  const colleague = await findUserId(eitherId);
  if (colleague === undefined) throw new HttpError(404, 'No such user');
  return withConstraintErrors(
    database().projectMember.create({
      data: { projectId, userId: colleague, role: 'member' },
      select: { userId: true, role: true },
    }),
    { conflict: 'Already a member' },
  );
}

/** Deletes the memberships of a user, and each project that had no other member. Has no effect if the user is unknown. */
export async function deleteMemberships(
  transaction: Transaction,
  identityProviderUserId: string,
): Promise<void> {
  const user = await transaction.user.findUnique({ where: { identityProviderUserId } });
  if (user === null) return;
  const where = { userId: user.id };
  const memberships = await transaction.projectMember.findMany({ where, select: { projectId: true } });
  await transaction.projectMember.deleteMany({ where });
  const ids = memberships.map(({ projectId }) => projectId);
  await transaction.project.deleteMany({ where: { id: { in: ids }, members: { none: {} } } });
}
