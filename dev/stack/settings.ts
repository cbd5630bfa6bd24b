import path from 'node:path';
import { fileURLToPath } from 'node:url';
import nextEnv from '@next/env';
import { z } from 'zod';
import { reloadEnvInChildren } from '#lib/next/program';

/** Root folder of the project. */
export const projectFolder = fileURLToPath(new URL('../..', import.meta.url));

/** Cache folder of clerk-js, the browser SDK. The local stack and the tests share the folder. */
export const clerkJsFolder = path.join(projectFolder, '.local/clerk');

const identityProviderVariables = [
  'IDP_SECRET_KEY',
  'IDP_PUBLISHABLE_KEY',
  'IDP_WEBHOOK_SIGNING_SECRET',
] as const;
const kvVariables = ['KV_REST_API_URL', 'KV_REST_API_TOKEN'] as const;

const Settings = z.object({
  /** Folder for local data. */
  LOCAL_FOLDER: z
    .string()
    .default('.local')
    .transform((folder) => path.resolve(projectFolder, folder)),
  PORT: z.coerce.number('not a port number').int().min(1).max(65535).optional(),
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/, error: 'not a postgresql:// URL' }).optional(),
  KV_REST_API_URL: z.url({ protocol: /^https?$/, error: 'not an http:// or https:// URL' }).optional(),
  KV_REST_API_TOKEN: z.string().optional(),
  IDP_SECRET_KEY: z.string().optional(),
});

/** Settings of the local stack, which does not start a dependency whose variables are set. */
export type Settings = z.infer<typeof Settings>;

/**
 * Removes the variables of the developer's shell that belong to other programs or projects and would change the local stack:
 * those of PostgreSQL clients and of Clerk's SDK. Exempts this machine from the proxy. Sets NODE_ENV. Then loads the .env files,
 * as Next.js does.
 */
export function prepareEnvironment(mode: 'dev' | 'preview'): void {
  for (const name of Object.keys(process.env)) {
    if (/^(?:PG|(?:NEXT_PUBLIC_)?CLERK_)/.test(name)) delete process.env[name];
  }
  const { NO_PROXY, no_proxy = NO_PROXY } = process.env;
  const exempt = [no_proxy, 'localhost', '127.0.0.1'].filter(Boolean).join(',');
  Object.assign(process.env, { NO_PROXY: exempt, no_proxy: exempt });
  Object.assign(process.env, { NODE_ENV: mode === 'dev' ? 'development' : 'production' });
  nextEnv.loadEnvConfig(projectFolder, mode === 'dev');
  reloadEnvInChildren();
}

/** Parses the settings. Empty variables count as unset. Throws one error with all invalid variables by name, never by value. */
export function readSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const set = Object.fromEntries(Object.entries(environment).filter(([, value]) => value?.trim()));
  const parsed = Settings.safeParse(set);
  const problems = [
    ...(parsed.error?.issues.map((issue) => `${String(issue.path[0])}: ${issue.message}`) ?? []),
    ...allOrNone(
      identityProviderVariables,
      set,
      'to use your own instance, or none of them to use the emulator',
    ),
    ...allOrNone(kvVariables, set, 'to use your own store, or none of them to use the embedded one'),
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
