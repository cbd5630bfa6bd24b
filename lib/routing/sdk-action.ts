/** The format of a server action's id in Next.js. */
const ACTION_ID = /^[0-9a-f]{40,64}$/;

/** The body of the SDK's server action, which takes no arguments. */
export const SDK_ACTION_BODY = '[]';

/**
 * Returns true if the headers of a POST request to a page may belong to the SDK's server action, which makes a browser drop
 * the pages of another session: a server action from the page's own origin, with a body of two bytes. Next.js fails on any
 * other action and prints what was sent. Does not read the body.
 */
export function hasSdkActionHeaders(header: (name: string) => string | null | undefined): boolean {
  const origin = header('origin') ?? undefined;
  // The hosts that Next.js compares the origin with.
  const hosts = [header('x-forwarded-host')?.split(',')[0]?.trim(), header('host')];
  return (
    ACTION_ID.test(header('next-action') ?? '') &&
    /^text\/plain(?:;|$)/.test(header('content-type') ?? '') &&
    header('content-length') === String(SDK_ACTION_BODY.length) &&
    (origin === undefined || (URL.canParse(origin) && hosts.includes(new URL(origin).host)))
  );
}
