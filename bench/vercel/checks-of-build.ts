import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import type { Deployment } from './deployment';
import type { Check } from './report';

/** What is for developers and operators: nothing of it may be in a function. */
const NOT_DEPLOYED = ['dev', 'tests', 'bench', 'commands', 'prisma'] as const;

const filesBelow = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));

const isSource = (file: string) => /\.tsx?$/.test(file);
const textsOf = (tree: string, folders: readonly string[]) =>
  folders
    .flatMap((folder) => filesBelow(path.join(tree, folder)).filter(isSource))
    .map((file) => readFileSync(file, 'utf8'));

/**
 * The sentences in our code that is not deployed, but for those that what is deployed has too: they outlive a bundler. Tests
 * quote what the service says.
 */
function sentences(tree: string): string[] {
  const deployed = textsOf(tree, ['app', 'lib']).join('\n');
  const theirs = textsOf(tree, ['dev', 'commands', 'prisma']).flatMap((text) =>
    [...text.matchAll(/'([^'\\\n]* [^'\\\n]{25,})'/g)].map(([, sentence = '']) => sentence),
  );
  return [...new Set(theirs)].filter((sentence) => !deployed.includes(sentence));
}

const Package = z.object({ devDependencies: z.record(z.string(), z.string()) });
const Platform = z.object({ functions: z.record(z.string(), z.object({ maxDuration: z.number() })) });

/** Checks of what the build made, before any of it runs. */
export function checksOfBuild(
  tree: string,
  { functions, at }: Deployment,
  secrets: readonly string[],
): readonly Check[] {
  const read = (file: string) => readFileSync(path.join(tree, file), 'utf8');
  return [
    {
      title: 'no function holds a file of dev/, tests/, bench/, commands/, prisma/, or an environment file',
      async run() {
        const ours = new RegExp(`^(?:${NOT_DEPLOYED.join('|')})/|^\\.env(?!\\.example$)`);
        const found = functions.flatMap(({ name, files }) =>
          files.filter((file) => ours.test(file)).map((file) => `${name}: ${file}`),
        );
        assert.deepEqual(found, []);
      },
    },
    {
      title: 'no function holds a package that is for development',
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
      title: 'no chunk holds a sentence of dev/, commands/, prisma/, and no file a secret of the environment',
      async run() {
        const output = path.join(tree, '.vercel', 'output');
        const theirs = sentences(tree);
        assert.ok(theirs.length > 100, 'their sentences were not found');
        for (const file of filesBelow(output)) {
          const text = readFileSync(file, 'utf8');
          const ofChunk = file.includes('/.next/') || file.includes('/static/') ? theirs : [];
          const found = [...ofChunk, ...secrets].filter((each) => text.includes(each));
          assert.deepEqual(found, [], `in ${path.relative(output, file)}`);
        }
      },
    },
    {
      title: 'every function has the start-up (instrumentation.ts)',
      async run() {
        for (const { name, files } of functions)
          assert.ok(files.includes('.next/server/instrumentation.js'), `not in ${name}`);
      },
    },
    {
      title: 'functions ask for Node.js 24, and those of routes and pages for the bound of vercel.json',
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
