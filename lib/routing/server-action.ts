/** The format of a server action's id in Next.js. */
const ACTION_ID = /^[0-9a-f]{40,64}$/;
/** Content type of an action that a script of the page calls. The id is in a header. */
const CALL = /^(?:text\/plain|multipart\/form-data)(?:;|$)/;
/** Content type of an action that a browser without scripts submits as a form. The fields of the form contain the id. */
const FORM = /^multipart\/form-data;/;

/** Maximum size of a server action's body, in bytes. Next.js has the same limit. */
const MAX_ACTION_BYTES = 1024 * 1024;

type ActionHeaders = 'action' | 'too-large' | 'not-an-action';

/**
 * Checks the headers of a POST request to a page. Returns `action` for a server action with a body of at most 1 MiB, and
 * `too-large` for one with a longer body. A request counts as a server action if it does not come from another origin, states
 * the length of its body, and is a form or has the id of an action in a header. Returns `not-an-action` for any other request.
 * The caller must reject such a request, because Next.js would fail and print parts of the request. Does not read the body.
 */
export function checkActionHeaders(header: (name: string) => string | null | undefined): ActionHeaders {
  const id = header('next-action') ?? undefined;
  const contentType = header('content-type') ?? '';
  const length = header('content-length') ?? '';
  const origin = header('origin') ?? undefined;
  // Next.js compares the origin with these hosts.
  const hosts = [header('x-forwarded-host')?.split(',')[0]?.trim(), header('host')];
  const isSameOrigin =
    /^(?:same-origin|none)$/.test(header('sec-fetch-site') ?? 'none') &&
    (origin === undefined || (URL.canParse(origin) && hosts.includes(new URL(origin).host)));
  const isAction = id === undefined ? FORM.test(contentType) : ACTION_ID.test(id) && CALL.test(contentType);
  if (!isSameOrigin || !isAction || !/^\d+$/.test(length)) return 'not-an-action';
  return Number(length) > MAX_ACTION_BYTES ? 'too-large' : 'action';
}
