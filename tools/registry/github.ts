import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { builtItem, itemNames } from './build';
import { write } from './hosts';
import { step } from './steps';

const Item = z.object({ files: z.array(z.object({ target: z.string(), content: z.string() })) });
const REPOSITORY = 'example/identity-link';

/**
 * Installs the shadcn items (build.ts) from a GitHub repository into an application without `src/`, and throws if a file
 * differs from the built item. This checkout replaces the repository: git reads the checkout instead of github.com, and
 * emulate-github.mjs returns files of the checkout for requests to raw.githubusercontent.com.
 */
export async function checkGitHub(folder: string): Promise<void> {
  write(folder, 'package.json', '{ "private": true }');
  write(folder, 'tsconfig.json', '{ "compilerOptions": { "paths": { "@/*": ["./*"] } } }');
  // Omits the cache item. It replaces a file of the core item, so the comparison below would fail, and shadcn would download a
  // package.
  const names = itemNames.filter((name) => name !== 'identity-link-cache');
  await step(`npx shadcn@4.23.0 add ${names.map((name) => `${REPOSITORY}/${name}`).join(' ')}`, folder, {
    ...process.env,
    npm_config_yes: 'true',
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: `url.${process.cwd()}.insteadOf`,
    GIT_CONFIG_VALUE_0: `https://github.com/${REPOSITORY}.git`,
    NODE_OPTIONS: `--import ${path.resolve('tools/registry/emulate-github.mjs')}`,
    CHECKOUT: process.cwd(),
  });
  for (const { target, content } of names.flatMap((name) => Item.parse(JSON.parse(builtItem(name))).files)) {
    const installed = readFileSync(path.join(folder, target.replace('~/', '')), 'utf8');
    if (installed !== content) throw new Error(`shadcn did not install ${target} from the repository.`);
  }
}
