import path from 'node:path';
import { fileURLToPath } from 'node:url';
import nextEnv from '@next/env';
import { z } from 'zod';

/** The folder that holds package.json. */
export const projectFolder = fileURLToPath(new URL('../..', import.meta.url));

const identityProviderVariables = [
  'IDP_SECRET_KEY',
  'IDP_PUBLISHABLE_KEY',
  'IDP_WEBHOOK_SIGNING_SECRET',
] as const;
const kvVariables = ['KV_REST_API_URL', 'KV_REST_API_TOKEN'] as const;

const Settings = z.object({
  /** Where local data lives. */
  LOCAL_FOLDER: z
    .string()
    .default('.local')
    .transform((folder) => path.resolve(projectFolder, folder)),
  PORT: z
    .string()
    .regex(/^\d+$/, 'is no port')
    .transform(Number)
    .pipe(z.number().min(1).max(65535))
    .optional(),
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/, error: 'is no postgresql:// URL' }).optional(),
  KV_REST_API_URL: z.url({ protocol: /^https?$/, error: 'is no http(s):// URL' }).optional(),
  KV_REST_API_TOKEN: z.string().optional(),
  /** A Redis to keep what the embedded KV server is given. */
  REDIS_URL: z.url({ protocol: /^rediss?$/, error: 'is no redis:// URL' }).optional(),
  IDP_SECRET_KEY: z.string().optional(),
  /** The style of the stand-in's keys: those of a development or of a production instance. */
  IDP_KEY_STYLE: z.enum(['test', 'live'], 'is neither test nor live').default('test'),
  /** Multiplies every delay of the provider's retry schedule; by default its 5 s become 5 ms, its 10 h 36 s. */
  IDP_RETRY_SCALE: z.coerce.number('is no number').min(0.0001).max(1).default(0.001),
  /** `nonce` as real instances respond, or `token` as they did before. */
  IDP_HANDSHAKE_FORMAT: z.enum(['nonce', 'token'], 'is neither nonce nor token').default('nonce'),
  /** `off`: session tokens from a handshake have no `azp`, as on some real instances. */
  IDP_HANDSHAKE_AZP: z.enum(['on', 'off'], 'is neither on nor off').default('on'),
});

/** What the environment says about the local stack; a part whose variables are set is not embedded. */
export type Settings = z.infer<typeof Settings>;

/**
 * Reads `.env.local` and its kin into the environment, where they change nothing that is set, as Next does.
 * An empty variable counts as not set.
 */
export function loadEnvironmentFiles(mode: 'dev' | 'preview'): void {
  const quiet = { info: () => {}, error: console.error };
  nextEnv.loadEnvConfig(projectFolder, mode === 'dev', quiet);
  delete process.env['__NEXT_PROCESSED_ENV']; // Next shall do it again: it tells which files it read
}

/** Throws an error that lists everything wrong, by name, never by value. */
export function readSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const set = Object.fromEntries(Object.entries(environment).filter(([, value]) => value?.trim()));
  const parsed = Settings.safeParse(set);
  const problems = [
    ...(parsed.error?.issues.map((issue) => `${String(issue.path[0])}: ${issue.message}`) ?? []),
    ...allOrNone(identityProviderVariables, set, 'to use your own instance, none to use the local stand-in'),
    ...allOrNone(kvVariables, set, 'to use your own store, none to use the embedded one'),
  ];
  if (!parsed.success || problems.length > 0) {
    throw new Error(
      ['The local stack cannot start:', ...problems.map((problem) => `  ${problem}`)].join('\n'),
    );
  }
  return parsed.data;
}

function allOrNone(names: readonly string[], set: Record<string, unknown>, purpose: string): string[] {
  const missing = names.filter((name) => set[name] === undefined);
  if (missing.length === 0 || missing.length === names.length) return [];
  return [`${missing.join(', ')}: not set. Set ${names.join(', ')} ${purpose}.`];
}
