import type { NextRequest } from 'next/server';

/** Returns a host without a default port, which the origin of a browser does not contain. */
export const withoutDefaultPort = (host: string): string => host.replace(/:(?:80|443)$/, '');

/** The format of a server action's id in Next.js. */
const ACTION_ID = /^[0-9a-f]{40,64}$/;
/** Fields of a form that contain an encoded argument. The other fields contain what the user entered. */
const ENCODED = /^(?:\$ACTION_\d+:)?\d+$/;

/** Throws if an encoded argument is not JSON. */
async function checkArguments(request: NextRequest): Promise<void> {
  const isForm = request.headers.get('content-type')?.startsWith('multipart/form-data');
  const fields = isForm ? await request.formData() : [['0', await request.text()] as const];
  for (const [name, value] of fields) if (ENCODED.test(name)) JSON.parse(String(value));
}

/**
 * Returns the status of the rejection of a POST to a page, or undefined if Next.js may handle it. Rejects a malformed action id,
 * another origin, and arguments that are not JSON, because Next.js would log this text of the client.
 */
export async function rejectedActionStatus(request: NextRequest): Promise<400 | 404 | undefined> {
  const { method, headers } = request;
  if (method !== 'POST') return undefined;
  const id = headers.get('next-action');
  if (id !== null && !ACTION_ID.test(id)) return 404;
  const origin = headers.get('origin');
  const forwarded = headers.get('x-forwarded-host')?.split(',')[0]?.trim();
  const hosts = [forwarded, headers.get('host')].map((host) => (host ? withoutDefaultPort(host) : undefined));
  if (origin !== null && !(URL.canParse(origin) && hosts.includes(new URL(origin).host))) return 400;
  return checkArguments(request).then(
    () => undefined,
    () => 400 as const,
  );
}
