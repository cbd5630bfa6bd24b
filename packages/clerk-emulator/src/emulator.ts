import { randomBytes } from 'node:crypto';
import { createApis, listOperations } from './apis';
import { backendRoutes } from './backend-api/routes';
import { DEFAULT_CLERK_JS_FOLDER, serveClerkJs } from './clerk-js';
import { startConsole } from './console/server';
import { close, createHttpServer, errorBody, listen } from './http';
import {
  acceptPassword,
  createSession,
  createUser,
  deleteUser,
  endSession,
  requireSession,
  requireUser,
} from './instance/accounts';
import { type Clock, creationTimes, DAY_SECONDS, systemClock } from './instance/clock';
import type { Organization, Session, User } from './instance/data';
import { type Failures, failureQueue } from './instance/failures';
import { type HandshakeSettings, handshakes } from './instance/handshakes';
import { EmailAddress } from './instance/identifiers';
import { type Instance, parsePublishableKey } from './instance/instance';
import { issueOAuthToken, issueToken, type OAuthTokenRequest } from './instance/issued-tokens';
import { signingKey } from './instance/jwt';
import { createOrganization } from './instance/organizations';
import { requestLog } from './instance/requests';
import { Settings, type SettingsInput } from './instance/settings';
import { openStore } from './instance/store';
import { changeSettings } from './instance/token-templates';
import { startWebhooks } from './instance/webhooks';
import { plant, type Seed } from './seed';
import { sdkVariables } from './variables';

/** Options of an emulator. The defaults are those of Clerk, unless the description of an option says otherwise. */
export interface EmulatorOptions extends SettingsInput {
  /** Port of the Backend API and of the Frontend API on 127.0.0.1. Default: any free port. */
  readonly port?: number;
  /**
   * `pk_test_…` (development instance) or `pk_live_…` (production instance). The rest of the key is the host name of the
   * issuer and `$`, encoded in base64. The Frontend API of a development instance recognizes a browser by a query parameter. A
   * production instance uses a cookie instead. Default: the key of a development instance.
   */
  readonly publishableKey?: string | undefined;
  /** Authenticates requests to the Backend API. Default: a new key. */
  readonly secretKey?: string | undefined;
  /** RSA private key in PEM, unless the data file has one. Default: a new key, which takes about a second. */
  readonly signingKeyPem?: string;
  /** Endpoint for events. Without an endpoint, events wait until one is set. */
  readonly webhook?: { readonly url: string; readonly secret: string } | undefined;
  /** Factor for the delays of Clerk's webhook retry schedule. Default: 1. */
  readonly retryScale?: number;
  /** Settings, users and organizations of the start and of `reset`. The users are ignored at a start with an existing data file. */
  readonly seed?: Seed | undefined;
  /** File that stores all data of the emulator, including the signing key. Default: none, the data is only in memory. */
  readonly dataFile?: string | undefined;
  /** Cache folder of clerk-js. Default: `node_modules/.cache/clerk-emulator` in the working directory. */
  readonly clerkJsFolder?: string | undefined;
  /** Starts the console on 127.0.0.1, on any free port if the preferred one is in use. Default: no console. */
  readonly console?: { readonly preferredPort: number };
  /** Time and timers. Default: the system clock. */
  readonly clock?: Clock;
  /** Variant of the handshakes. Default: the nonce format, and an `azp` claim in the session tokens. */
  readonly handshake?: Partial<HandshakeSettings>;
}

type Shared = 'signingKey' | 'store' | 'webhooks' | 'reset' | 'oauth';

/** A running emulator. Serves Clerk's two APIs and the account portal over HTTP. */
export interface Emulator extends ReturnType<typeof accountControls>, Pick<Instance, Shared> {
  /** Address of the Backend API and of the Frontend API. */
  readonly url: string;
  /** Address of the console, or undefined without the option `console`. */
  readonly consoleUrl: string | undefined;
  /** Environment variables that make Clerk's SDKs use the emulator. */
  readonly variables: Readonly<Record<string, string>>;
  /** The operations of both APIs, such as `GET /v1/users/:id`. */
  readonly operations: readonly string[];
  readonly issuer: string;
  readonly publicKeyPem: string;
  /** Makes the next calls of an operation fail. */
  readonly failures: Failures;
  /** The settings of the instance's dashboard. */
  readonly settings: Settings;
  /** Changes settings. Throws for an invalid one. */
  configure(changes: SettingsInput): void;
  /** Changes the format and the claims of later handshakes. */
  setHandshake(settings: Partial<HandshakeSettings>): void;
  /** Closes all connections, cancels all timers and writes the data file. */
  stop(): Promise<void>;
}

const DEFAULT_PUBLISHABLE_KEY = `pk_test_${Buffer.from('emulator.clerk.accounts.dev$').toString('base64')}`;

/** Starts an emulator on the loopback interface. Rejects if the port is in use or the data file is invalid. */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  let operations: readonly string[] = [];
  const instance = await openInstance(options, () => operations);
  const { store, webhooks, publishableKey, signingKey } = instance;
  const backend = backendRoutes(instance);
  const app = createApis(instance, backend, serveClerkJs(options.clerkJsFolder ?? DEFAULT_CLERK_JS_FOLDER));
  operations = listOperations(app);
  const startedConsole =
    options.console && (await startConsole(instance, backend, options.console.preferredPort));
  const server = createHttpServer(app, errorBody);
  const stop = async () => {
    await startedConsole?.stop();
    await close(server);
    await webhooks.stop();
    await store.close();
  };
  const port = await listen(server, options.port).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  const url = `http://127.0.0.1:${port}`;
  const consoleUrl = startedConsole?.url;
  return {
    url,
    consoleUrl,
    variables: sdkVariables(instance, url, consoleUrl, options.webhook?.secret),
    operations,
    issuer: publishableKey.issuer,
    publicKeyPem: signingKey.publicKeyPem,
    signingKey,
    ...accountControls(instance, url),
    store,
    webhooks,
    failures: instance.failures,
    get settings() {
      return instance.settings;
    },
    configure: (changes) => void changeSettings(instance, changes),
    reset: instance.reset,
    setHandshake: instance.handshakes.set,
    oauth: instance.oauth,
    stop,
  };
}

/** Opens the data of an instance and starts its webhooks. Its servers are not started. */
async function openInstance(
  options: EmulatorOptions,
  operations: () => readonly string[],
): Promise<Instance> {
  const clock = options.clock ?? systemClock;
  const publishableKey = parsePublishableKey(options.publishableKey ?? DEFAULT_PUBLISHABLE_KEY);
  const store = await openStore(options.dataFile, options.signingKeyPem);
  const key = signingKey(store.signingKeyPem);
  const initial = Settings.parse({ ...options.seed?.settings, ...options });
  const instance: Instance = {
    publishableKey,
    secretKey: options.secretKey ?? `sk_test_${randomBytes(20).toString('hex')}`,
    signingKey: key,
    settings: initial,
    reset() {
      store.clear();
      instance.failures.clear();
      changeSettings(instance, initial);
      plant(instance, options.seed ?? {});
    },
    clock,
    creationTime: creationTimes(clock),
    store,
    webhooks: startWebhooks({
      store,
      clock,
      endpoint: options.webhook && { url: options.webhook.url, secrets: [options.webhook.secret] },
      retryScale: options.retryScale ?? 1,
      instanceId: key.kid,
    }),
    failures: failureQueue(operations),
    requests: requestLog(store.announce),
    handshakes: handshakes(clock, options.handshake),
    oauth: { accessTokenFormat: 'jwt', accessTokenSeconds: DAY_SECONDS, loopbackClients: false },
  };
  if (store.isNew) instance.reset();
  else changeSettings(instance, initial);
  return instance;
}

/** Returns the functions with which a program changes the accounts of an instance. */
function accountControls(instance: Instance, url: string) {
  return {
    /** Creates a user and sends `user.created`. Throws for an invalid or taken address and for a password of invalid length. */
    createUser(input: { email: string; password?: string; firstName?: string; lastName?: string }): User & {
      readonly email: string;
    } {
      const { firstName = null, lastName = null } = input;
      const email = EmailAddress.parse(input.email);
      const password = input.password === undefined ? null : acceptPassword(input.password, 'password');
      return { ...createUser(instance, { emails: [email], password, firstName, lastName }), email };
    },
    /** Deletes a user, ends the user's sessions and sends `user.deleted`. Throws for an unknown id. */
    deleteUser: (userId: string): void => void deleteUser(instance, requireUser(instance, userId)),
    /** Creates an organization. The creator becomes its admin. Throws for an unknown id and for a taken slug. */
    createOrganization(input: { name: string; createdBy: string; slug?: string }): Organization {
      const { createdBy, ...fields } = input;
      return createOrganization(instance, { ...fields, creator: requireUser(instance, createdBy) });
    },
    /**
     * Signs a user in without a browser. If an organization is given, it is the active organization of the session. Throws for an
     * unknown id, for a banned or locked user, and if the user is not a member of the organization.
     */
    createSession: (userId: string, organizationId: string | null = null): Session =>
      createSession(instance, requireUser(instance, userId), 'client_backend', organizationId),
    /** Revokes a session. Throws for an unknown id. */
    revokeSession: (sessionId: string): Session =>
      endSession(instance, requireSession(instance, sessionId), 'revoked'),
    /** Returns a session token with `origin` as its authorized party. Throws for an unknown id. */
    sessionToken: (sessionId: string, origin?: string): string =>
      issueToken(instance, requireSession(instance, sessionId), { origin }),
    /** Returns an OAuth access token, with which a client acts for a user. Throws for an unknown id. */
    oauthToken: (userId: string, request: OAuthTokenRequest = {}): string =>
      issueOAuthToken(instance, { issuer: url, userId }, request),
  };
}
