import { foreignKeys } from 'clerk-emulator/testing';
import { expect, test } from 'vitest';
import { type HostileAction, hostileActions, MARK } from '../harness/hostile-actions';
import { inParallel } from '../harness/parallel';
import { actionId, callAction, createProject, startProjectsService } from '../harness/projects';
import { cookie, now, tokenFor } from '../harness/requests';
import { stopAfterAll } from '../vitest/stop-after-all';

const REQUESTS = 2_000;
const SEED = 28;
const CONCURRENCY = 12;

const service = stopAfterAll(await startProjectsService());
const { pool } = service.database;
const project = await createProject(service, 'user_owner');

// Triggers record each project name and each member that the handlers write. The functions are SECURITY DEFINER, because the
// role of the service has no privileges on the table `written`.
await pool.query(`
  CREATE TABLE written (name TEXT);
  CREATE FUNCTION record_project() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS
    $$ BEGIN INSERT INTO written VALUES (NEW.name); RETURN NEW; END $$;
  CREATE TRIGGER record AFTER INSERT OR UPDATE ON projects FOR EACH ROW EXECUTE FUNCTION record_project();
  CREATE FUNCTION record_member() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS
    $$ BEGIN INSERT INTO written SELECT identity_provider_user_id FROM users WHERE id = NEW.user_id; RETURN NEW; END $$;
  CREATE TRIGGER record AFTER INSERT ON project_members FOR EACH ROW EXECUTE FUNCTION record_member()`);
/** Returns the recorded names and deletes them. */
const takeWritten = async () =>
  (await pool.query<{ name: string }>('DELETE FROM written RETURNING name')).rows.map(({ name }) => name);

const EXPIRED = { iat: now() - 900, nbf: now() - 900, exp: now() - 300 };
const TOKENS: Readonly<Record<HostileAction['session'], string | undefined>> = {
  owner: tokenFor(service.idp, 'user_owner'),
  stranger: tokenFor(service.idp, 'user_stranger'),
  none: undefined,
  expired: tokenFor(service.idp, 'user_owner', EXPIRED),
  pending: tokenFor(service.idp, 'user_owner', { sts: 'pending' }),
  'foreign signature': tokenFor(service.idp, 'user_owner', {}, { privateKeyPem: foreignKeys().privateKey }),
  'not a token': MARK,
};

const IDS = {
  createProject: actionId('createProject'),
  renameProject: actionId('renameProject'),
  addMember: actionId('addMember'),
  unknown: '7f'.repeat(21),
  malformed: `${MARK}__proto__`,
};
const PAGES = {
  list: '/projects',
  project: `/projects/${project}`,
  'unknown page': `/${MARK}`,
  account: '/account',
};

/** Returns true if the user may run the action, the request comes from the page's own origin, and the input is valid. */
function mayWrite({ session, target, originMatchesHost, body }: HostileAction): boolean {
  const isAllowed = session === 'owner' || (session === 'stranger' && target === 'createProject');
  return isAllowed && target !== 'unknown' && target !== 'malformed' && originMatchesHost && body.isValid;
}

function bodyOf({ name, target, body }: HostileAction): {
  body: FormData | string | ReadableStream;
  type?: string;
} {
  const fill = (text: string) =>
    text.replaceAll('$NAME', name).replaceAll('$PROJECT', project).replaceAll('$ID', IDS[target]);
  if (body.fields) {
    const form = new FormData();
    for (const [key, value] of Object.entries(body.fields)) form.append(fill(key), fill(value));
    return { body: form };
  }
  const text = fill(body.text ?? '');
  return {
    type: 'text/plain;charset=UTF-8',
    body: body.isChunked ? new Blob([text]).stream() : text,
  };
}

/**
 * Sends a request. The service may close the connection of a rejected request before it has read the body. `fetch` then fails,
 * and the status is 0. If the request may run a handler, the service must respond. For such a request, sendAction() passes an
 * error of `fetch` through.
 */
async function sendAction(action: HostileAction): Promise<{ status: number; text: string }> {
  const { body, type } = bodyOf(action);
  const token = TOKENS[action.session];
  const response = await fetch(`${service.url}${PAGES[action.page]}`, {
    method: 'POST',
    redirect: 'manual',
    signal: AbortSignal.timeout(60_000),
    headers: {
      origin: service.url,
      ...(action.body.isForm ? { accept: 'text/html' } : { 'next-action': IDS[action.target] }),
      ...(type === undefined ? {} : { 'content-type': type }),
      ...(token === undefined ? {} : cookie(token)),
      ...action.headers,
    },
    body,
    ...(action.body.isChunked ? { duplex: 'half' as const } : {}),
  }).catch((error: unknown) => {
    if (mayWrite(action)) throw error;
    return undefined;
  });
  return { status: response?.status ?? 0, text: (await response?.text()) ?? '' };
}

test(`None of ${REQUESTS} hostile requests runs a forbidden handler, gets a 5xx or a stack trace, or adds its input to the log`, async () => {
  const actions = hostileActions(REQUESTS, SEED);
  // Inserts a user for each request, because `addMember` adds only existing users.
  await pool.query('INSERT INTO users SELECT gen_random_uuid(), name FROM unnest($1::text[]) AS name', [
    actions.map(({ name }) => name),
  ]);
  const problems: string[] = [];
  const counts = new Map<number, number>();
  await inParallel(CONCURRENCY, actions, async (action) => {
    const { status, text } = await sendAction(action);
    counts.set(status, (counts.get(status) ?? 0) + 1);
    if (status >= 500) problems.push(`status ${status}: ${JSON.stringify(action).slice(0, 600)}`);
    if (/^\s+at .*\.js:\d|node_modules/m.test(text)) problems.push(`stack trace: ${JSON.stringify(action)}`);
  });
  const written = new Set(await takeWritten());
  for (const action of actions) {
    if (written.has(action.name) && !mayWrite(action))
      problems.push(`handler ran: ${JSON.stringify(action).slice(0, 600)}`);
  }
  expect(problems).toEqual([]);
  expect(service.output()).not.toContain(MARK);
  // The test is meaningful only if some requests run a handler.
  expect(written.size).toBeGreaterThan(50);
  expect([...counts.keys()].toSorted()).toEqual(expect.arrayContaining([200, 303, 400, 404, 405]));
});

test('A replayed call of a server action does not run the handler if the replay has no valid session or comes from another origin', async () => {
  const call = {
    id: IDS.renameProject,
    page: PAGES.project,
    input: { projectId: project, name: 'Replayed' },
  };
  expect(await callAction(service, { ...call, token: TOKENS.owner })).toMatchObject({ status: 200 });
  expect(await takeWritten()).toEqual(['Replayed']);
  for (const token of [TOKENS.none, TOKENS.expired, TOKENS.pending]) {
    const { headers } = await callAction(service, { ...call, token });
    expect(headers.get('x-action-redirect')).toMatch(/^\/sign-in\?redirect_url=/);
  }
  const foreign = { origin: 'https://evil.example' };
  expect(await callAction(service, { ...call, token: TOKENS.owner, headers: foreign })).toMatchObject({
    status: 405,
  });
  expect(await takeWritten()).toEqual([]);
});
