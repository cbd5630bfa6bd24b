import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { BUILD_FOLDER } from './build';
import { bearer, cookie, me, type ParsedResponse, send, tokenFor } from './requests';
import { startTestService, type TestService } from './service';

export const API = '/projects/v1/projects';

/** Privileges of the service's role: some of the grants in docs/deploy.md, and one for the tables of the projects example. */
const privilegesOf = (role: string) => `
  GRANT SELECT, INSERT ON users TO ${role};
  GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_messages, webhook_subjects TO ${role};
  GRANT SELECT, INSERT, UPDATE, DELETE ON projects, project_members, project_notes TO ${role}`;

/** The service with its own database role. The role is not a superuser, so row-level security applies to it. */
export interface ProjectsService extends TestService {
  readonly role: string;
}

/** Starts the service. Uses a random role name, because all databases of a PostgreSQL server share the roles. */
export async function startProjectsService(
  environment: Readonly<Record<string, string>> = {},
): Promise<ProjectsService> {
  const role = `projects_${randomBytes(6).toString('hex')}`;
  const service = await startTestService({
    environment,
    async databaseUrl({ pool, url }) {
      await pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'password-of-the-role'; ${privilegesOf(role)}`);
      return Object.assign(new URL(url), { username: role, password: 'password-of-the-role' }).href;
    },
  });
  return { ...service, role };
}

/** Sends an API request with a session token of the given user. */
export function request(
  { url, idp }: TestService,
  user: string,
  method: string,
  pathname: string,
  body?: unknown,
): Promise<ParsedResponse> {
  const headers = bearer(tokenFor(idp, user));
  return send(`${url}${pathname}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const WithUserId = z.object({ userId: z.string() });
/** Registers a user and returns the internal id. */
export const userIdOf = async ({ url, idp }: TestService, user: string) =>
  WithUserId.parse((await me(url, tokenFor(idp, user))).body).userId;

const Created = z.object({ id: z.string() });
/** Creates a project that a user owns, and returns the id of the project. */
export const createProject = async (service: TestService, user: string, name = 'A project') =>
  Created.parse((await request(service, user, 'POST', API, { name })).body).id;

const Manifest = z.object({ node: z.record(z.string(), z.object({ exportedName: z.string() })) });

/** Returns the id of a server action of the projects example in the current build. */
export function actionId(name: 'createProject' | 'renameProject' | 'addMember'): string {
  const file = path.join(BUILD_FOLDER, 'server/server-reference-manifest.json');
  const { node } = Manifest.parse(JSON.parse(readFileSync(file, 'utf8')));
  const found = Object.entries(node).find(([, { exportedName }]) => exportedName === name);
  if (!found) throw new Error(`The build has no server action ${name}`);
  return found[0];
}

export interface Action {
  readonly id: string;
  readonly input: unknown;
  /** Session token. Without one, the request has no session. */
  readonly token?: string | undefined;
  readonly page?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Calls a server action with the request that the Next.js client sends in a browser. */
export const callAction = ({ url }: TestService, { id, input, token, page = '/projects', headers }: Action) =>
  send(`${url}${page}`, {
    method: 'POST',
    headers: {
      ...{
        origin: url,
        'next-action': id,
        'content-type': 'text/plain;charset=UTF-8',
        accept: 'text/x-component',
      },
      ...(token === undefined ? {} : cookie(token)),
      ...headers,
    },
    body: JSON.stringify([null, input]),
  });

/**
 * Requests a page. `destination` is the value of the header `sec-fetch-dest`. A browser sends `document` when it navigates to
 * a page. Clerk's SDK renews a session by a redirect only if the value is `document` or `iframe`. The default `empty` prevents
 * such a redirect.
 */
export const openPage = ({ url }: TestService, page: string, token?: string, destination = 'empty') =>
  send(`${url}${page}`, {
    headers: {
      ...{ accept: 'text/html', 'sec-fetch-dest': destination },
      ...(token === undefined ? {} : cookie(token)),
    },
  });
