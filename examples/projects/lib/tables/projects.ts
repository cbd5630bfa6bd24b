import { v7 as uuidV7 } from 'uuid';
import * as z from 'zod/mini';
import { text } from '../api/text';
import { HttpError } from '../http/error';
import { withConstraintErrors } from '../storage/constraint-error';
import type { Transaction } from '../storage/database';
import { asCaller, type Caller } from './caller';

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
 * Returns a page of the caller's projects in the order of the project ids. `next` is the value of `after` for the next page, or
 * null on the last page.
 */
export async function listProjects(
  caller: Caller,
  after?: string,
): Promise<{ projects: Project[]; next: string | null }> {
  const { tenantId, userId } = caller;
  const rows = await asCaller(caller, (transaction) =>
    transaction.projectMember.findMany({
      // The condition contains the tenant as well, because no policy applies to the superuser of the local stack.
      where: { userId, project: { tenantId }, ...(after === undefined ? {} : { projectId: { gt: after } }) },
      orderBy: { projectId: 'asc' },
      take: PAGE_SIZE + 1,
      select: shown,
    }),
  );
  const projects = rows.slice(0, PAGE_SIZE).map(({ role, project }) => ({ ...project, role }));
  return { projects, next: rows.length > PAGE_SIZE ? (projects.at(-1)?.id ?? null) : null };
}

/** Creates a project of the tenant with the caller as its owner. The project and the membership are committed together. */
export function createProject(caller: Caller, name: string): Promise<Project> {
  const { tenantId, userId } = caller;
  const id = uuidV7();
  const creating = asCaller(caller, (transaction) =>
    transaction.project.create({
      data: { id, tenantId, name, members: { create: { userId, role: 'owner' } } },
    }),
  );
  return withConstraintErrors(creating.then(() => ({ id, name, role: 'owner' })));
}

/**
 * Returns a project and the caller's role. Throws a 404 if the project does not exist, belongs to another tenant or has other
 * members only.
 */
export async function findProject(
  transaction: Transaction,
  { tenantId, userId }: Caller,
  projectId: string,
): Promise<Project> {
  const row = await transaction.projectMember.findUnique({
    where: { projectId_userId: { projectId, userId }, project: { tenantId } },
    select: shown,
  });
  if (row === null) throw new HttpError(404, 'Not found');
  return { ...row.project, role: row.role };
}

/** Runs `findProject` in a transaction. */
export const getProject = (caller: Caller, projectId: string): Promise<Project> =>
  asCaller(caller, (transaction) => findProject(transaction, caller, projectId));

/** Runs statements for an owner of a project. Throws the 404 of `findProject`, and a 403 for a member with another role. */
function asOwner<T>(
  caller: Caller,
  projectId: string,
  run: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  return asCaller(caller, async (transaction) => {
    const { role } = await findProject(transaction, caller, projectId);
    if (role !== 'owner') throw new HttpError(403, 'Only an owner may do this');
    return run(transaction);
  });
}

/** Renames a project. The caller must be an owner of the project. */
export async function renameProject(caller: Caller, projectId: string, name: string): Promise<Project> {
  const renaming = asOwner(caller, projectId, (transaction) =>
    transaction.project.update({ where: { id: projectId }, data: { name } }),
  );
  await withConstraintErrors(renaming);
  return { id: projectId, name, role: 'owner' };
}

/** Deletes a project. ON DELETE CASCADE deletes its memberships and notes. The caller must be an owner of the project. */
export async function deleteProject(caller: Caller, projectId: string): Promise<void> {
  const deleting = asOwner(caller, projectId, (transaction) =>
    transaction.project.delete({ where: { id: projectId } }),
  );
  await withConstraintErrors(deleting);
}

/**
 * Returns up to 100 members of a project, owners first. The caller must be a member of the project. PostgreSQL sorts the roles
 * in the order of the enum `project_role`, and its first value is `owner`.
 */
export function listMembers(caller: Caller, projectId: string): Promise<Member[]> {
  return asCaller(caller, async (transaction) => {
    await findProject(transaction, caller, projectId);
    return transaction.projectMember.findMany({
      where: { projectId },
      orderBy: [{ role: 'asc' }, { userId: 'asc' }],
      take: 100,
      select: { userId: true, role: true },
    });
  });
}

/** Finds a user by internal id or, if no user has this internal id, by identity-provider id. Throws a 404 for an unknown user. */
async function findUserId(transaction: Transaction, eitherId: string): Promise<string> {
  const internal = z.uuid().safeParse(eitherId.toLowerCase()).data;
  const users = await transaction.user.findMany({
    where: { OR: [{ identityProviderUserId: eitherId }, ...(internal ? [{ id: internal }] : [])] },
    select: { id: true },
  });
  const found = users.find(({ id }) => id === internal) ?? users[0];
  if (found === undefined) throw new HttpError(404, 'No such user');
  return found.id;
}

/**
 * Adds a colleague to a project. Throws a 404 if the colleague is unknown, and a 409 if the colleague is a member. A colleague
 * outside of the organization does not see the project, because no session of this colleague has the tenant.
 */
export function addMember(caller: Caller, projectId: string, eitherId: string): Promise<Member> {
  return withConstraintErrors(
    asOwner(caller, projectId, async (transaction) =>
      transaction.projectMember.create({
        data: { projectId, userId: await findUserId(transaction, eitherId), role: 'member' },
        select: { userId: true, role: true },
      }),
    ),
    { conflict: 'Already a member' },
  );
}
