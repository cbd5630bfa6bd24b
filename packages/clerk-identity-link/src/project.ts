import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Type, TypeChecker } from 'typescript';

export type TypeScript = typeof import('typescript');

export const textOf = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');

/** Returns the folder of the workspaces that contain an application, or its own folder. */
export function rootOf(application: string): string {
  const isRoot = (folder: string) =>
    existsSync(path.join(folder, 'pnpm-workspace.yaml')) ||
    textOf(path.join(folder, 'package.json')).includes('"workspaces"');
  const parents = ['.', '..', '../..', '../../..'].map((parent) => path.resolve(application, parent));
  return parents.find(isRoot) ?? path.resolve(application);
}

/** Returns the TypeScript of the application. Version 7 has no JavaScript API, but a companion package with that of version 6. */
export function loadTypeScript(application: string): TypeScript {
  const load = createRequire(path.resolve(application, 'package.json'));
  for (const name of ['typescript', '@typescript/typescript6'])
    try {
      const found: TypeScript = load(name);
      if ('createProgram' in found) return found;
    } catch {}
  throw new Error(
    'TypeScript is missing, or is version 7, which has no JavaScript API. ' +
      'Run: npm install --save-dev --save-exact @typescript/typescript6@6.0.2',
  );
}

const SKIPPED = 'dist build coverage generated test tests __tests__ e2e scripts'.split(' ');
/** Tests, stories, seeds and declarations, which are not a part of the running application. */
const OTHER = /[./](?:test|spec|stories|d|seed)\.\w+$/;

/** Reads the sources of an application and of the other workspaces, without folders that it may not read. Or reads one file. */
export function readSources(ts: TypeScript, application: string, only?: string) {
  const extensions = ['.ts', '.tsx', '.mts', '.js', '.jsx', '.mjs'];
  // This pattern leaves out node_modules and folders whose names begin with a dot.
  const skipped = SKIPPED.map((name) => `**/${name}`);
  const all = ts.sys.readDirectory(rootOf(application), extensions, skipped, ['**/*']);
  const files = only ? [only] : all.filter((file) => !OTHER.test(file));
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => undefined };
  const config = path.resolve(application, 'tsconfig.json');
  const options = ts.getParsedCommandLineOfConfigFile(config, {}, host)?.options;
  const program = ts.createProgram(files, { ...options, allowJs: true, noEmit: true, skipLibCheck: true });
  const sources = files.flatMap((file) => program.getSourceFile(file) ?? []);
  return { program, checker: program.getTypeChecker(), sources };
}

/** Returns the type at the end of a path of properties. */
export const typeIn = (checker: TypeChecker, type: Type | undefined, ...names: readonly string[]) =>
  names.reduce<Type | undefined>((found, name) => {
    const property = found?.getNonNullableType().getProperty(name);
    return property && checker.getTypeOfSymbol(property);
  }, type);

/** Returns the types that Prisma has of the model of a delegate, also of an extended client. Undefined for another type. */
export const modelOf = (checker: TypeChecker, type: Type): Type | undefined =>
  checker
    .getIndexInfosOfType(type.getNonNullableType())
    .map((index) => typeIn(checker, index.type, 'types'))
    .find((types) => typeIn(checker, types, 'payload', 'scalars'));
