import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { run } from '../../../tools/temporary-project';

const PACKAGE = path.resolve('packages/clerk-identity-link');

/** Writes an application with these files and models of Prisma, and the dependencies of this checkout. */
export async function writeApplication(
  folder: string,
  models: string,
  files: Readonly<Record<string, string>>,
) {
  const exported = ['index', 'next', 'prisma', 'drizzle'].map((name) => [
    path.join('clerk-identity-link', name.replace('index', '')),
    [path.join(PACKAGE, `src/${name}.ts`)],
  ]);
  const paths = { ...Object.fromEntries(exported), '@/*': ['./*'] };
  const options = {
    strict: true,
    module: 'esnext',
    moduleResolution: 'bundler',
    target: 'es2022',
    types: ['node'],
  };
  const all = {
    'package.json': '{ "workspaces": ["apps/*", "packages/*"] }',
    'tsconfig.json': JSON.stringify({ compilerOptions: { ...options, paths } }),
    'prisma.config.ts': "export default { schema: 'schema.prisma' };\n",
    'schema.prisma': `generator client {
  provider = "prisma-client"
  output   = "generated"
}
datasource db {
  provider = "postgresql"
}
${models}`,
    ...files,
  };
  for (const [file, text] of Object.entries(all)) {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    writeFileSync(path.join(folder, file), text);
  }
  symlinkSync(path.resolve('node_modules'), path.join(folder, 'node_modules'));
  if (models)
    await run('node_modules/.bin/prisma generate', folder, {
      ...process.env,
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    });
}
