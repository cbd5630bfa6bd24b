import assert from 'node:assert/strict';
import { z } from 'zod';
import { cookie, type ParsedResponse, send, tokenFor } from '../../tests/harness/requests';
import type { TestDependencies } from '../../tests/harness/service';
import type { Deployment } from './deployment';
import type { Check } from './report';

/** Text in each invalid request. It must not appear in the log. */
const MARK = 'mark5b1e';
/** Valid server action id that no server action of the build has. */
const UNKNOWN_ID = '7f'.repeat(21);
const CALL = { 'content-type': 'text/plain;charset=UTF-8', accept: 'text/x-component' };

/**
 * Grants `role` access to the tables of the example. The example's migration skips this grant, because the role does not exist
 * yet when the migration runs.
 */
export async function grantExampleTables({ database }: TestDependencies, role: string): Promise<void> {
  const tables = 'projects, project_members, project_notes';
  await database.pool.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${tables} TO ${role}`);
}

const decodeHtml = (text: string) => text.replaceAll('&quot;', '"').replaceAll('&amp;', '&');

/** Returns the hidden fields of the form in a page. Next.js writes the id of the server action into these fields. */
const hiddenFields = (html: string) =>
  [...html.matchAll(/<input type="hidden" name="([^"]*)"(?: value="([^"]*)")?/g)].map(
    ([, name = '', value = '']) => [decodeHtml(name), decodeHtml(value)] as const,
  );

const Reference = z.object({ id: z.string() });

/** Returns checks for the pages and one server action of examples/projects. `name` is part of the test data of the checks. */
export function exampleChecks(
  name: string,
  deployment: Deployment,
  dependencies: TestDependencies,
): readonly Check[] {
  const { url } = deployment;
  const session = cookie(tokenFor(dependencies.idp, `user_${name}_example`));
  const origin = { origin: url };
  let created = '';

  async function readForm() {
    const { body } = await send(`${url}/projects`, { headers: session });
    const fields = hiddenFields(String(body));
    // The field `$ACTION_<n>:0` contains the id of the action. The field `$ACTION_<n>:1` contains the bound arguments.
    const reference = fields.find(([field]) => field.endsWith(':0'))?.[1] ?? '';
    return { fields, id: Reference.parse(JSON.parse(reference)).id };
  }

  const postForm = (
    fields: Iterable<readonly [string, string]>,
    headers: Record<string, string> = origin,
  ) => {
    const body = new FormData();
    for (const [field, value] of fields) body.append(field, value);
    return send(`${url}/projects`, { method: 'POST', headers: { ...session, ...headers }, body });
  };

  const call = (id: string, body: string, headers: Record<string, string> = origin) =>
    send(`${url}/projects`, {
      method: 'POST',
      headers: { ...CALL, ...session, ...headers, 'next-action': id },
      body,
    });

  // The action has two arguments: the previous state of the form, and the input.
  const argumentsFor = (project: string) => JSON.stringify([null, { name: project }]);
  const countProjects = async () =>
    (await dependencies.database.pool.query('SELECT 1 FROM projects')).rowCount;

  async function assertCreated({ headers }: ParsedResponse, header: string, project: string) {
    const found = await dependencies.database.pool.query<{ id: string }>(
      'SELECT id FROM projects WHERE name = $1',
      [project],
    );
    assert.equal(found.rowCount, 1);
    created = `/projects/${found.rows[0]?.id}`;
    assert.equal(headers.get(header)?.split(';')[0], created);
  }

  /** Sends invalid requests. Expects `status` for each, no new project, and neither MARK nor UNKNOWN_ID in the log. */
  async function assertRejected(status: number, requests: readonly (() => Promise<ParsedResponse>)[]) {
    const before = await countProjects();
    const responses = [];
    for (const request of requests) responses.push(await request());
    assert.deepEqual(
      responses.map((response) => response.status),
      requests.map(() => status),
    );
    assert.equal(await countProjects(), before);
    for (const part of [MARK, UNKNOWN_ID])
      assert.ok(!deployment.output().includes(part), `the log contains ${part}`);
    return responses;
  }

  return [
    {
      title: 'The list of projects loads with and without a session',
      async run() {
        const visitor = await send(`${url}/projects`);
        assert.equal(visitor.status, 200);
        assert.match(String(visitor.body), /Signed out/);
        const user = await send(`${url}/projects`, { headers: session });
        assert.equal(user.status, 200);
        assert.match(String(user.body), /Signed in as/);
      },
    },
    {
      title: 'A call of the server action from JavaScript creates a project',
      async run() {
        const { id } = await readForm();
        const response = await call(id, argumentsFor(`Called ${name}`));
        // Next.js responds with 200 and puts the target of the redirect into a header.
        assert.equal(response.status, 200);
        await assertCreated(response, 'x-action-redirect', `Called ${name}`);
      },
    },
    {
      title: 'The form creates a project without JavaScript',
      async run() {
        const { fields } = await readForm();
        const response = await postForm([...fields, ['name', `Submitted ${name}`]]);
        assert.equal(response.status, 303);
        await assertCreated(response, 'location', `Submitted ${name}`);
      },
    },
    {
      title: 'The page of a project redirects to sign-in without a session, and loads with a session',
      async run() {
        const { status, headers } = await send(`${url}${created}`);
        const signIn = `/sign-in?redirect_url=${encodeURIComponent(created)}`;
        assert.deepEqual([status, headers.get('location')], [307, signIn]);
        const page = await send(`${url}${created}`, { headers: session });
        assert.equal(page.status, 200);
        assert.match(String(page.body), new RegExp(`Submitted ${name}`));
      },
    },
    {
      title:
        'A request with an unknown action id gets a 409 with the header that makes the Next.js client reload the page',
      async run() {
        const unknown: [string, string] = [`$ACTION_ID_${UNKNOWN_ID}`, ''];
        const responses = await assertRejected(409, [
          () => call(UNKNOWN_ID, argumentsFor(MARK)),
          () => postForm([unknown, ['name', MARK]]),
        ]);
        for (const { headers } of responses) assert.equal(headers.get('x-nextjs-action-not-found'), '1');
      },
    },
    {
      title: 'A request with a malformed action id gets a 405',
      async run() {
        await assertRejected(405, [() => call(`${MARK}__proto__`, argumentsFor(MARK))]);
      },
    },
    {
      title: 'A cross-site call of a server action gets a 405',
      async run() {
        const { id, fields } = await readForm();
        const foreign = { origin: `https://${MARK}.example` };
        await assertRejected(405, [
          () => call(id, argumentsFor(MARK), foreign),
          () => call(id, argumentsFor(MARK), { ...origin, 'sec-fetch-site': 'cross-site' }),
          () => postForm([...fields, ['name', MARK]], foreign),
        ]);
      },
    },
    {
      title:
        'A call of a server action gets a 400 if its arguments are malformed, and a form gets a 400 if it has no action id',
      async run() {
        const { id, fields } = await readForm();
        const broken = fields.map(([field, value]) => [field, field.endsWith(':1') ? MARK : value] as const);
        await assertRejected(400, [
          () => call(id, `[null,{"name":"${MARK}"`),
          () => call(id, `[${'['.repeat(100)}"${MARK}"`),
          () => postForm([...broken, ['name', MARK]]),
          () => postForm([['name', MARK]]),
        ]);
      },
    },
  ];
}
