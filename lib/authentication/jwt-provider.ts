import { setTimeout as sleep } from 'node:timers/promises';
import {
  createRemoteJWKSet,
  customFetch,
  errors,
  type JWTHeaderParameters,
  type JWTPayload,
  jwtVerify,
} from 'jose';
import * as z from 'zod/mini';
import { isLoopback } from '../base/env';
import { limitBody } from '../core/body';
import { fieldsOf, isIdentityProviderUserId, parseActor, parseJson } from '../core/values';
import type { Verdict } from '../core/verdict';
import type { Provider } from '../providers';

/** The algorithms of the library whose signatures have a public key. */
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ');
const CLOCK_SKEW_SECONDS = 5;
/** Time limit of each request for keys. A provider has 4 s in all. */
const FETCH_MS = 1_900;
const MAX_BYTES = 256 * 1024;
/** After this time, the keys are loaded again, so that a key that the issuer has withdrawn becomes invalid. */
const MAX_AGE_MS = 600_000;
/** Age after which the keys are loaded again if the last attempt failed. */
const RETRY_MS = 30_000;
/** Minimum time between two loads. Any client can cause one, because it happens before the claim `iss` is verified. */
const INTERVAL_MS = 1_500;
/** Ends with `|` and contains no other one, so that no prefix begins with another. */
const PREFIX = /^(?:[\w-]+\|)?$/;
/** The word is optional (docs/contract.md, 5.4). */
const BEARER = /^(?:Bearer +)?([\w-]+\.[\w-]+\.[\w-]+) *$/i;
/** Types of a token for requests (RFC 9068, 2.1). Logout tokens and other security events have their own. */
const TYPE = /^(?:application\/)?(?:at\+)?jwt$/i;

interface JwtProviderOptions {
  /** The claim `iss`, exactly as the tokens have it. */
  readonly issuer: string;
  /** A value of the claim `aud`. It must belong to your own frontends, because such a token counts as a session of the user. */
  readonly audience: string;
  /**
   * The OAuth clients that are your own frontends. A token that names a client (`client_id` or `azp`) must name one of them,
   * because a token of another client has only the rights that the user gave to this client. Default: none.
   */
  readonly clients?: readonly string[];
  /** Address of the public keys. Default: the one in the discovery document of the issuer. */
  readonly jwksUrl?: string;
  /** Default: all algorithms with a public key. */
  readonly algorithms?: readonly string[];
  /**
   * Precedes the claim `sub` in the user id, such as `auth0|`, so that the issuer cannot name a user of another provider. With an
   * empty prefix, the issuer can name every user. Choose this only for a provider that you trust as much as Clerk.
   */
  readonly prefix: string;
}

function checkUrl(url: string): string {
  const { protocol, hostname } = new URL(url);
  if (protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))) return url;
  throw new Error(`The address of an issuer must begin with https: ${url}`);
}

/** Fetches a JSON document of at most 256 KiB. Rejects a redirect. */
async function fetchJson(url: string): Promise<unknown> {
  const signal = AbortSignal.timeout(FETCH_MS);
  const response = await fetch(url, { redirect: 'manual', cache: 'no-store', signal });
  if (response.status !== 200) throw new Error(`The issuer responds with status ${response.status}`);
  return JSON.parse(await limitBody(response, { maxBytes: MAX_BYTES, notUtf8: 'Not text' }).text());
}

const Discovery = z.object({ issuer: z.string(), jwks_uri: z.string() });

async function discover(issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const document = Discovery.parse(await fetchJson(url));
  if (document.issuer !== issuer) throw new Error('The discovery document names another issuer');
  return checkUrl(document.jwks_uri);
}

/** A key set without keys, or with a private one, is a mistake of the issuer, and does not make a token invalid. */
const PublicKey = z.looseObject({ kty: z.string() }).check(z.refine((key) => !('d' in key)));
const KeySet = z.object({ keys: z.array(PublicKey).check(z.minLength(1)) });

/**
 * Returns a function that finds the key of a token. It loads the keys at the first call, after ten minutes, and for a token whose
 * key is unknown. If they cannot be loaded again, the last ones stay valid. The function throws a JOSEError if the issuer has no
 * such key, and another error if this could not be checked. An issuer with several keys must name one in each token (`kid`, OpenID
 * Connect Core, 10.1). Other tokens are rejected, because each would cost a verification with every key.
 */
function keysOf(issuer: string, jwksUrl?: string) {
  let expiresAt = 0;
  let retryAt = 0;
  const keys = createRemoteJWKSet(new URL(issuer), {
    cooldownDuration: INTERVAL_MS,
    cacheMaxAge: Number.POSITIVE_INFINITY,
    async [customFetch]() {
      // The library limits only the loads after a successful one.
      if (Date.now() < retryAt) throw new Error('The last load of the keys has failed');
      retryAt = Date.now() + INTERVAL_MS;
      expiresAt = Date.now() + RETRY_MS;
      const set = KeySet.parse(await fetchJson(jwksUrl ?? (await discover(issuer))));
      expiresAt = Date.now() + MAX_AGE_MS;
      return Response.json(set);
    },
  });
  return async (header: JWTHeaderParameters) => {
    const isCoolingDown = keys.coolingDown;
    if (keys.jwks() && Date.now() > expiresAt) await keys.reload().catch(() => undefined);
    return keys(header).catch(async (error: unknown) => {
      if (!isCoolingDown || !(error instanceof errors.JWKSNoMatchingKey)) throw error;
      // The issuer may have published the key after the last load.
      await sleep(INTERVAL_MS);
      return keys(header);
    });
  };
}

/** Reads the claims of a token without a verification. */
const readClaims = (jwt: string) =>
  fieldsOf(parseJson(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()));

/**
 * Creates a provider of users whose credential is a JWT with the signature of an issuer with public keys (OpenID Connect). Throws
 * an error for options that could turn a token for another service, or a forged one, into a session.
 */
export function jwtProvider(options: JwtProviderOptions): Provider {
  const { issuer, audience, clients = [], jwksUrl, algorithms = ALGORITHMS, prefix } = options;
  // Without an audience, as when a variable is not set, the library would accept a token for any service.
  if (!audience || algorithms.length === 0) throw new Error('A provider needs an audience and an algorithm');
  if (!PREFIX.test(prefix))
    throw new Error(
      'The prefix of a provider must be empty, or consist of letters and digits and a final "|"',
    );
  const symmetric = algorithms.filter((name) => !ALGORITHMS.includes(name));
  if (symmetric.length > 0) throw new Error(`Not an algorithm with a public key: ${symmetric}`);
  const findKey = keysOf(checkUrl(issuer), jwksUrl && checkUrl(jwksUrl));
  const required = {
    issuer,
    audience,
    algorithms: [...algorithms],
    requiredClaims: ['sub', 'exp'],
    clockTolerance: CLOCK_SKEW_SECONDS,
    // With a maximum, the library requires `iat`, and rejects a time in the future, which would be newer than every deletion.
    maxTokenAge: Number.MAX_SAFE_INTEGER,
  };

  /** Returns the verdict on a token whose signature and times are valid. */
  function verdictOf({ sub, iat: issuedAt, exp: expiresAt, act, client_id, azp }: JWTPayload): Verdict {
    const named = [client_id, azp].filter((client) => client !== undefined);
    // The subject of a token without a user is its client (RFC 9068, 2.2).
    if (!named.every((client) => client !== sub && clients.some((own) => own === client)))
      return { reason: 'foreign-client' };
    const user = typeof sub === 'string' && sub !== '' ? prefix + sub : undefined;
    const actor = parseActor(act);
    if (!isIdentityProviderUserId(user)) return { reason: 'no-user-id' };
    if (actor === null) return { reason: 'malformed' };
    return { user, issuedAt, expiresAt, actor };
  }

  return {
    name: new URL(issuer).host,
    prefix,
    async authenticate({ headers }) {
      const jwt = BEARER.exec(headers.get('authorization') ?? '')?.[1];
      if (jwt === undefined) return undefined;
      const { iss, exp } = readClaims(jwt);
      if (iss !== issuer) return undefined;
      // No key makes an expired token valid, so it is rejected during an outage too.
      if (Number(exp) < Date.now() / 1_000 - CLOCK_SKEW_SECONDS) return { reason: 'jwt-expired' };
      try {
        const { payload, protectedHeader } = await jwtVerify(jwt, findKey, required);
        return TYPE.test(protectedHeader.typ ?? 'JWT') ? verdictOf(payload) : { reason: 'token-type' };
      } catch (error) {
        if (error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout))
          return { reason: error.code.slice('ERR_'.length).toLowerCase().replaceAll('_', '-') };
        throw error;
      }
    },
  };
}
