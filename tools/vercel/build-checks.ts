import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import type { Deployment } from './deployment';
import type { Check } from './report';

/** Folders for developers and operators. No Vercel function may contain a file of these folders. */
const NOT_DEPLOYED = ['dev', 'packages', 'tests', 'bench', 'tools', 'commands', 'prisma'] as const;

const filesBelow = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));

const isSource = (file: string) => /\.tsx?$/.test(file);
const readSources = (tree: string, folders: readonly string[]) =>
  folders
    .flatMap((folder) => filesBelow(path.join(tree, folder)).filter(isSource))
    .map((file) => readFileSync(file, 'utf8'));

/**
 * Returns strings that occur only in code that is not deployed. Bundlers keep strings unchanged, so such a string in the
 * output shows that the output contains the code. Returns only string literals with a space and at least 25 characters after it.
 * Other code may contain the same string if it is short or a single word. Does not read the tests. A test can contain a text
 * that the service composes from several strings. The output, such as a prerendered page, can then contain the same text.
 */
function findUndeployedStrings(tree: string): string[] {
  const deployed = readSources(tree, ['app', 'lib']).join('\n');
  const strings = readSources(tree, ['dev', 'packages/clerk-emulator/src', 'commands', 'prisma']).flatMap(
    (text) => [...text.matchAll(/'([^'\\\n]* [^'\\\n]{25,})'/g)].map(([, string = '']) => string),
  );
  return [...new Set(strings)].filter((string) => !deployed.includes(string));
}

const Package = z.object({ devDependencies: z.record(z.string(), z.string()) });
const Platform = z.object({ functions: z.record(z.string(), z.object({ maxDuration: z.number() })) });

/** Returns the checks of the build output. */
export function buildChecks(
  tree: string,
  { functions, at }: Deployment,
  secrets: readonly string[],
): readonly Check[] {
  const read = (file: string) => readFileSync(path.join(tree, file), 'utf8');
  return [
    {
      title:
        'No function contains a file of dev/, packages/, tests/, bench/, tools/, commands/ or prisma/, or an environment file except .env.example',
      async run() {
        const notDeployed = new RegExp(`^(?:${NOT_DEPLOYED.join('|')})/|^\\.env(?!\\.example$)`);
        const found = functions.flatMap(({ name, files }) =>
          files.filter((file) => notDeployed.test(file)).map((file) => `${name}: ${file}`),
        );
        assert.deepEqual(found, []);
      },
    },
    {
      title: 'No function contains a development dependency',
      async run() {
        const { devDependencies } = Package.parse(JSON.parse(read('package.json')));
        for (const { name, files } of functions) {
          const found = Object.keys(devDependencies).filter((each) =>
            files.some((file) => file.startsWith(`node_modules/${each}/`)),
          );
          assert.deepEqual(found, [], `in ${name}`);
        }
      },
    },
    {
      title:
        'No chunk contains a string that occurs only in code that is not deployed, and no file of the output contains a secret',
      async run() {
        const output = path.join(tree, '.vercel', 'output');
        const undeployed = findUndeployedStrings(tree);
        assert.ok(undeployed.length > 100, 'too few strings found');
        for (const file of filesBelow(output)) {
          const text = readFileSync(file, 'utf8');
          const isChunk = file.includes('/.next/') || file.includes('/static/');
          const found = [...(isChunk ? undeployed : []), ...secrets].filter((each) => text.includes(each));
          assert.deepEqual(found, [], `in ${path.relative(output, file)}`);
        }
      },
    },
    {
      title: 'Every function contains instrumentation.ts',
      async run() {
        for (const { name, files } of functions)
          assert.ok(files.includes('.next/server/instrumentation.js'), `not in ${name}`);
      },
    },
    {
      title: 'All functions use Node.js 24, and routes and pages have the maxDuration of vercel.json',
      async run() {
        const { maxDuration } = Platform.parse(JSON.parse(read('vercel.json'))).functions['app/**/*'] ?? {};
        assert.ok(maxDuration);
        for (const { config } of functions) assert.equal(config.runtime, 'nodejs24.x');
        for (const address of [
          '/users/v1/me',
          '/auth/v1/register',
          '/webhooks/idp/v1/user-created',
          '/account',
        ])
          assert.equal(at(address).config.maxDuration, maxDuration, address);
      },
    },
  ];
}
