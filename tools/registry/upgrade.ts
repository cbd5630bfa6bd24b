import { readFileSync } from 'node:fs';
import path from 'node:path';
import { builtItem } from './build';
import { guideCommands, type Host, write } from './hosts';
import { output, step } from './steps';

const ITEM = '../identity-link/registry/identity-link.json';
/** Code of an item, before and after an upgrade. shadcn shows the line without its semicolon. */
const LINES = ['return withTimeout(8_000, registration)', 'return withTimeout(9_000, registration)'] as const;

/** A shadcn configuration without the parts that shadcn would download. */
const COMPONENTS = {
  style: 'new-york',
  rsc: true,
  tsx: true,
  tailwind: { config: '', css: 'app.css', baseColor: '', cssVariables: false },
  aliases: { components: '@/components', utils: '@/lib/utils' },
};

/** Changes a file of the item, and throws if shadcn does not show and install the change. */
export async function checkUpgrade(folder: string, host: Host, env: NodeJS.ProcessEnv): Promise<void> {
  const [before, after] = LINES;
  const item = builtItem('identity-link');
  write(folder, ITEM, item.replace(before, after));
  write(folder, 'components.json', JSON.stringify(COMPONENTS));
  for (const command of guideCommands('Upgrade')) {
    const { text } = await output(command, folder, env);
    for (const line of [`-  ${before}`, `+  ${after}`])
      if (!text.includes(line)) throw new Error(`shadcn does not show the change:\n${line}`);
  }
  await step(`npx shadcn@4.23.0 add ${ITEM} --overwrite`, folder, env);
  const upgraded = readFileSync(path.join(folder, host.root, 'lib/identity-link/link.ts'), 'utf8');
  if (!upgraded.includes(after)) throw new Error('shadcn did not install the change.');
  write(folder, ITEM, item);
}
