import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';

const StoredKeys = z.object({
  instance: z.string(),
  secret: z.string(),
  webhookSecret: z.string(),
  kvToken: z.string(),
});

/** Keys and secrets of one local stack (the service and the servers that it needs, on one machine). */
export interface LocalKeys {
  readonly publishableKey: string;
  readonly secretKey: string;
  readonly webhookSecret: string;
  readonly kvToken: string;
}

/**
 * Returns the keys in `file`. Creates the file with random keys if it does not exist. `style` selects the key format: that of a
 * development instance (`test`) or of a production instance (`live`) of the identity provider. The keys stay the same across
 * restarts, so that browsers stay signed in: the names of the session cookies contain a hash of the publishable key. Throws if
 * the file does not contain the keys of a local stack.
 */
export function localKeys(file: string, style: 'test' | 'live'): LocalKeys {
  if (!existsSync(file)) writeFileSync(file, `${JSON.stringify(randomKeys(), null, 2)}\n`, { mode: 0o600 });
  const { instance, secret, webhookSecret, kvToken } = read(file);
  // The browser SDK recognizes a development instance by the domain `clerk.accounts.dev`.
  const host = style === 'test' ? `${instance}.clerk.accounts.dev` : `clerk.${instance}.localhost.example`;
  return {
    publishableKey: `pk_${style}_${Buffer.from(`${host}$`).toString('base64')}`,
    secretKey: `sk_${style}_${secret}`,
    webhookSecret,
    kvToken,
  };
}

function randomKeys(): z.infer<typeof StoredKeys> {
  return {
    instance: `local-${randomBytes(4).toString('hex')}`,
    secret: randomBytes(20).toString('hex'),
    webhookSecret: `whsec_${randomBytes(32).toString('base64')}`,
    kvToken: randomBytes(24).toString('base64url'),
  };
}

function read(file: string): z.infer<typeof StoredKeys> {
  try {
    return StoredKeys.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (cause) {
    throw new Error(`${file} does not contain the keys of a local stack. Delete it to create new keys.`, {
      cause,
    });
  }
}
