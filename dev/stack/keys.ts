import { randomBytes, randomInt } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';

const StoredKeys = z.object({
  instance: z.string(),
  secret: z.string(),
  webhookSecret: z.string(),
  kvToken: z.string(),
  /** Port of the identity provider. It does not change, because OAuth clients store the issuer. */
  providerPort: z.number().default(3901),
});

/**
 * Returns the keys, the secrets and the port in `file`, which belong to one local stack. Creates the file with random keys if it
 * does not exist. The keys stay the same across restarts, so that browsers stay signed in: the names of the session cookies
 * contain a hash of the publishable key.
 */
export function localKeys(file: string) {
  if (!existsSync(file)) writeFileSync(file, `${JSON.stringify(randomKeys(), null, 2)}\n`, { mode: 0o600 });
  const { instance, secret, ...secrets } = read(file);
  // The browser SDK recognizes a development instance by the domain `clerk.accounts.dev`.
  const host = `${instance}.clerk.accounts.dev`;
  return {
    publishableKey: `pk_test_${Buffer.from(`${host}$`).toString('base64')}`,
    secretKey: `sk_test_${secret}`,
    ...secrets,
  };
}

const randomKeys = (): z.infer<typeof StoredKeys> => ({
  instance: `local-${randomBytes(4).toString('hex')}`,
  secret: randomBytes(20).toString('hex'),
  webhookSecret: `whsec_${randomBytes(32).toString('base64')}`,
  kvToken: randomBytes(24).toString('base64url'),
  providerPort: randomInt(20_000, 32_768),
});

function read(file: string): z.infer<typeof StoredKeys> {
  try {
    return StoredKeys.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (cause) {
    const remedy = 'Delete it to create new keys.';
    throw new Error(`${file} does not contain the keys of a local stack. ${remedy}`, { cause });
  }
}
