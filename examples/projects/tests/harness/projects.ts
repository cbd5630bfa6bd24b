import { z } from 'zod';
import { bearer, me, type ParsedResponse, send, tokenFor } from './requests';
import type { TestService, TestServiceOptions } from './service';

export const API = '/projects/v1/projects';

/** Privileges of the service's role: some of the grants in docs/deploy.md, and one for the tables of the projects example. */
const PRIVILEGES = `
  GRANT SELECT, INSERT ON users, tenants TO $role;
  GRANT SELECT ON previous_ids TO $role;
  GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_messages, webhook_subjects, pending_deletions TO $role;
  GRANT INSERT ON link_changes TO $role;
  GRANT SELECT, INSERT, UPDATE, DELETE ON projects, project_members, project_notes TO $role`;

/**
 * Options that start the service with its own database role. The role is not a superuser, so row-level security applies to it.
 */
export const projectsOptions: TestServiceOptions = {
  databaseUrl: async (database) => (await database.createRole(PRIVILEGES)).url,
};

/** Returns a session token of a user. Without an organization, none is active in the session. */
export const memberToken = ({ idp }: Pick<TestService, 'idp'>, user: string, organization?: string) =>
  tokenFor(idp, user, organization === undefined ? {} : { o: { id: organization, rol: 'member' } });

/** Sends an API request of a user in an organization. */
export function request(
  service: TestService,
  user: string,
  method: string,
  pathname: string,
  body?: unknown,
  organization = 'org_acme',
): Promise<ParsedResponse> {
  const { url } = service;
  const headers = bearer(memberToken(service, user, organization));
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  return send(`${url}${pathname}`, { method, headers, ...content });
}

const WithUserId = z.object({ userId: z.string() });
/** Registers a user and returns the internal id. */
export const userIdOf = async ({ url, idp }: TestService, user: string) =>
  WithUserId.parse((await me(url, tokenFor(idp, user))).body).userId;

const Created = z.object({ id: z.string() });
/** Creates a project of an organization that a user owns, and returns the id of the project. */
export const createProject = async (
  service: TestService,
  user: string,
  name = 'A project',
  organization?: string,
) => Created.parse((await request(service, user, 'POST', API, { name }, organization)).body).id;
