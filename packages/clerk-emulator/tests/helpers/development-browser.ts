import { z } from 'zod';
import type { Emulator, EmulatorOptions } from '../../src/emulator';
import { clerkFor, startForTest } from './emulator';

const Sessions = z.object({ sessions: z.array(z.object({ id: z.string() })) });

/** The fields that the tests read from a response of the Frontend API. */
export const BrowserResponse = z.object({
  response: z
    .object({
      id: z.string(),
      status: z.string(),
      created_session_id: z.string().nullable(),
    })
    .partial()
    .nullish(),
  client: Sessions.nullish(),
  meta: z.object({ client: Sessions.nullable() }).optional(),
  errors: z
    .array(z.object({ code: z.string(), meta: z.object({ param_name: z.string() }).partial() }))
    .optional(),
});

type Fields = Readonly<Record<string, string>>;

/**
 * Simulates a browser that uses a development instance. Like clerk-js, the browser sends each request other than GET as a POST
 * with a form, and the query contains the actual method. The query of each request contains a token that identifies the
 * browser. The token is `knownToken` or, by default, a new token from the emulator.
 */
export async function developmentBrowser({ url }: Pick<Emulator, 'url'>, knownToken?: string) {
  const newToken = async () => (await fetch(`${url}/v1/dev_browser`, { method: 'POST' })).json();
  const token = knownToken ?? z.object({ id: z.string() }).parse(await newToken()).id;

  const send = (method: string, path: string, fields: Fields = {}, headers: Fields = {}) => {
    const query = new URLSearchParams({
      __clerk_db_jwt: token,
      ...(method === 'GET' ? {} : { _method: method }),
    });
    return fetch(`${url}${path}${path.includes('?') ? '&' : '?'}${query}`, {
      headers,
      redirect: 'manual',
      ...(method === 'GET' ? {} : { method: 'POST', body: new URLSearchParams(fields) }),
    });
  };
  const call = async (method: string, path: string, fields: Fields = {}, headers: Fields = {}) => {
    const response = await send(method, path, fields, headers);
    const body: unknown = await response.json();
    const parsed = BrowserResponse.parse(body);
    return {
      status: response.status,
      headers: response.headers,
      code: parsed.errors?.[0]?.code,
      body,
      ...parsed,
    };
  };
  return {
    token,
    /** Sends a request and returns the unparsed response. */
    send,
    /** Sends a request and returns the parsed response. */
    call,
    /** Starts a sign-in. If `secret` contains the password, the emulator also verifies the first factor. */
    signIn: (identifier: string, secret: Fields = {}) =>
      call('POST', '/v1/client/sign_ins', { identifier, ...secret }),
    signUp: (email_address: string, password: string) =>
      call('POST', '/v1/client/sign_ups', { email_address, password }),
  };
}

export const EMAIL = 'ada+clerk_test@example.com';
export const PASSWORD = 'correct horse';

/** Starts an emulator with a user for the current test. `enter` signs the user in, in a browser of its own. */
export async function startWithUser(options?: Partial<EmulatorOptions>) {
  const provider = await startForTest(options);
  const user = provider.createUser({ email: EMAIL, password: PASSWORD });
  const enter = async () => {
    const browser = await developmentBrowser(provider);
    const { response } = await browser.signIn(EMAIL, { password: PASSWORD });
    const sessionId = response?.created_session_id ?? '';
    return { ...browser, sessionId, session: provider.store.sessions.get(sessionId) };
  };
  return { provider, user, enter, clerk: clerkFor(provider) };
}
