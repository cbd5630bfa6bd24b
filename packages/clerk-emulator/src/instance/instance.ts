import { createHash, timingSafeEqual } from 'node:crypto';
import type { Clock } from './clock';
import type { failureQueue } from './failures';
import type { handshakes } from './handshakes';
import type { SigningKey } from './jwt';
import type { requestLog } from './requests';
import type { Settings } from './settings';
import type { Store } from './store';
import type { Webhooks } from './webhooks';

/** The emulated Clerk instance: its keys, its settings (see `EmulatorOptions`) and its components. */
export interface Instance {
  readonly publishableKey: PublishableKey;
  readonly secretKey: string;
  /** Key that signs every token of this instance. */
  readonly signingKey: SigningKey;
  settings: Settings;
  /**
   * Returns to the settings and the seed of the start. Signs all users out and removes all other data and the failures. Sends the
   * events of the new data.
   */
  readonly reset: () => void;
  readonly clock: Clock;
  /** Returns the creation time of the next user. */
  readonly creationTime: () => number;
  readonly store: Store;
  readonly webhooks: Webhooks;
  readonly failures: ReturnType<typeof failureQueue>;
  readonly requests: ReturnType<typeof requestLog>;
  readonly handshakes: ReturnType<typeof handshakes>;
  /**
   * Settings of OAuth, which can be changed. By default, access tokens are JWTs that are valid for a day. An opaque one is a random
   * string that starts with `oat_`. `loopbackClients` lets the metadata document of a client be on this machine. Default: false.
   */
  readonly oauth: {
    accessTokenFormat: 'jwt' | 'opaque';
    accessTokenSeconds: number;
    loopbackClients: boolean;
  };
}

/** The content of a publishable key. */
export interface PublishableKey {
  readonly text: string;
  /** True for a development instance, which identifies a browser by a token in the query instead of a cookie. */
  readonly development: boolean;
  readonly issuer: string;
  /** Suffix that the SDKs add to the cookie names of this instance. */
  readonly cookieSuffix: string;
}

/** Parses a publishable key. Throws if the SDKs would reject it. */
export function parsePublishableKey(key: string): PublishableKey {
  const [, kind, encoded = ''] = /^pk_(test|live)_([A-Za-z0-9+/]+=*)$/.exec(key) ?? [];
  const decoded = Buffer.from(encoded, 'base64').toString();
  if (kind === undefined || !/^[a-z0-9.-]+\.[a-z0-9-]+\$$/.test(decoded)) {
    throw new Error(
      'The publishable key must be pk_test_ or pk_live_, followed by the base64 form of "host.name$"',
    );
  }
  return {
    text: key,
    development: kind === 'test',
    issuer: `https://${decoded.slice(0, -1)}`,
    cookieSuffix: createHash('sha1').update(key).digest('base64url').slice(0, 8),
  };
}

/** Returns true if the value is the secret key, of an instance or of an OAuth client. Compares in constant time. */
export function isSecretKey({ secretKey }: Pick<Instance, 'secretKey'>, value: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(value), hash(secretKey));
}
