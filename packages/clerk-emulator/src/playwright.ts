import { randomUUID } from 'node:crypto';
import { z } from 'zod';

// Fixtures for Playwright, exported as `clerk-emulator/playwright`. The interfaces `Context` and `Response` have the methods of
// Playwright that this module calls. The package therefore does not depend on Playwright.

interface Response {
  url(): string;
  status(): number;
  json(): Promise<unknown>;
  headersArray(): readonly { readonly name: string; readonly value: string }[];
}

interface RequestOptions {
  headers?: Record<string, string>;
  form?: Record<string, string>;
  data?: unknown;
  maxRedirects?: number;
  maxRetries?: number;
  failOnStatusCode?: boolean;
}

/** A browser context of Playwright. */
interface Context {
  readonly request: {
    get(url: string, options?: RequestOptions): Promise<Response>;
    post(url: string, options?: RequestOptions): Promise<Response>;
  };
  addCookies(cookies: readonly { name: string; value: string; url: string }[]): Promise<void>;
  clearCookies(options: { name: string }): Promise<void>;
}

interface SignIn {
  /** URL of the Frontend API, or its path if the application proxies it. */
  readonly frontendApi: string;
  /** URL of the application. Default: the origin of the Frontend API. */
  readonly application?: string;
  /** The fields of a sign-in, such as a strategy, an identifier and a password. */
  readonly credentials: Record<string, string>;
}

/** A user of the emulator. */
export interface SignedInUser {
  readonly id: string;
  readonly email: string;
}

/** The fields of a new user. By default, the address is unique and there is no password. */
export interface NewUser {
  readonly email?: string;
  readonly password?: string;
  readonly firstName?: string;
  readonly lastName?: string;
}

/** The fixtures that `fixtures` adds to a test. */
export interface EmulatorFixtures {
  /**
   * Signs a user in, in the browser context of the test. Creates the user, unless `user` is the result of a previous call or has the
   * id and the address of a user of the seed.
   */
  signedInAs(user?: NewUser | SignedInUser): Promise<SignedInUser>;
  /** Returns the emulator to the settings and the data of its start (`--seed`). */
  resetEmulator(): Promise<void>;
}

/** Rejects a response with an error. Retries once, because the server may close an idle keep-alive connection while a request is sent. */
const STRICT = { failOnStatusCode: true, maxRetries: 1 } as const;

const Created = z.object({ id: z.string() });
const Handshake = z.object({ handshake: z.array(z.string()) });
const SignInToken = z.object({ token: z.string() });
const Variables = z.object({
  CLERK_API_URL: z.string(),
  CLERK_FAPI_URL: z.string(),
  CLERK_SECRET_KEY: z.string(),
});

/** Fixtures for `test.extend`. They read the environment variables of the emulator. */
export const fixtures = {
  signedInAs: async (
    { context, baseURL }: { context: Context; baseURL: string | undefined },
    use: (signedInAs: EmulatorFixtures['signedInAs']) => Promise<void>,
  ): Promise<void> => {
    const { frontendApi, create } = backendApi(context);
    if (baseURL === undefined) throw new Error('signedInAs needs the option baseURL of Playwright.');
    await use(async (wanted = {}) => {
      const user = 'id' in wanted ? wanted : await createUser(create, wanted);
      const created = await create('sign_in_tokens', { user_id: user.id });
      const { token } = SignInToken.parse(await created.json());
      await signIn(context, {
        frontendApi,
        application: baseURL,
        credentials: { strategy: 'ticket', ticket: token },
      });
      return { id: user.id, email: user.email };
    });
  },
  resetEmulator: async (
    { context }: { context: Context },
    use: (resetEmulator: EmulatorFixtures['resetEmulator']) => Promise<void>,
  ): Promise<void> => use(async () => void (await backendApi(context).create('emulator/reset', {}))),
};

/** Returns the variables of the emulator, and a function that calls the Backend API with the secret key. */
function backendApi({ request }: Context) {
  const { data: variables } = Variables.safeParse(process.env);
  if (variables === undefined) {
    throw new Error(
      'CLERK_API_URL, CLERK_FAPI_URL or CLERK_SECRET_KEY is not set: run clerk-emulator dev -- playwright test',
    );
  }
  const headers = { authorization: `Bearer ${variables.CLERK_SECRET_KEY}` };
  return {
    frontendApi: variables.CLERK_FAPI_URL,
    create: (path: string, data: unknown) =>
      request.post(`${variables.CLERK_API_URL}/v1/${path}`, { data, headers, ...STRICT }),
  };
}

async function createUser(
  create: (path: string, data: unknown) => Promise<Response>,
  { email = `user-${randomUUID()}@example.com`, password, firstName, lastName }: NewUser,
): Promise<SignedInUser> {
  const created = await create('users', {
    email_address: [email],
    first_name: firstName,
    last_name: lastName,
    ...(password === undefined ? { skip_password_requirement: true } : { password }),
  });
  return { id: Created.parse(await created.json()).id, email };
}

/**
 * Signs in through the Frontend API, which is faster than a form. The session cookies come from the token of a handshake, whose
 * redirect is not followed.
 */
export async function signIn(
  context: Context,
  { frontendApi, application, credentials }: SignIn,
): Promise<void> {
  const { request } = context;
  const newBrowser = await request.post(`${frontendApi}/v1/dev_browser`, STRICT);
  // The `id` of the response is a token that identifies the browser to a development instance. A production instance identifies
  // the browser by a cookie instead.
  const { id } = Created.parse(await newBrowser.json());
  const query = new URLSearchParams({ __clerk_db_jwt: id });
  await request.post(`${frontendApi}/v1/client/sign_ins?${query}`, { form: credentials, ...STRICT });
  const page = new URL('/', application ?? newBrowser.url()).href;
  query.set('redirect_url', page);
  const url = `${frontendApi}/v1/client/handshake?${query}`;
  const redirect = await request.get(url, { maxRedirects: 0, maxRetries: 1 });
  for (const directive of handshakeCookies(redirect)) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(directive) ?? [];
    if (/; Max-Age=0(?:;|$)/.test(directive)) await context.clearCookies({ name });
    else await context.addCookies([{ name, value, url: page }]);
  }
}

/** Returns the `Set-Cookie` values in the token of a handshake, which is in the `Location` header or in a cookie. */
function handshakeCookies(redirect: Response): readonly string[] {
  const headers = redirect.headersArray().map(({ value }) => value);
  const token = /\b__clerk_handshake=[\w-]+\.([\w-]+)/.exec(headers.join('\n'))?.[1];
  if (token === undefined) throw new Error(`The handshake returned ${redirect.status()} without a token.`);
  const { handshake } = Handshake.parse(JSON.parse(Buffer.from(token, 'base64url').toString()));
  if (handshake.some((directive) => /^__session=[^;]/.test(directive))) return handshake;
  throw new Error('The sign-in is not complete. Does it require a mailed code?');
}
