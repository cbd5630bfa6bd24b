import { execFileSync } from 'node:child_process';
import type { Result } from './report';

/** Runs git and returns its output. */
export const git = (...args: readonly string[]): string => execFileSync('git', args, { encoding: 'utf8' });

/**
 * Lines whose mutants are tested. A mutant is a copy of the code with one change. The lines are all lines of a path, or the
 * lines `from` to `to` of a file.
 */
export interface Scope {
  /** A file, or a folder. */
  readonly path: string;
  readonly from?: number;
  readonly to?: number;
}

/** Returns the lines that were added or changed in the TypeScript files of lib/ since a commit. */
export function changedLines(commit: string): Scope[] {
  const lines: Scope[] = [];
  let file = '';
  const diff = git(
    'diff',
    '--unified=0',
    '--no-color',
    '--no-ext-diff',
    '--diff-filter=d',
    commit,
    '--',
    'lib',
  );
  for (const line of diff.split('\n')) {
    file = /^\+\+\+ b\/(.*)/.exec(line)?.[1] ?? file;
    const [, from, count = '1'] = /^@@ .*\+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
    if (from === undefined || count === '0' || !/(?<!\.d)\.ts$/.test(file)) continue;
    lines.push({ path: file, from: Number(from), to: Number(from) + Number(count) - 1 });
  }
  return lines;
}

/** Returns a scope in the format of Stryker's option `--mutate`, for example `lib/log.ts:3-7`. */
export const patternOf = ({ path, from, to }: Scope): string =>
  from !== undefined ? `${path}:${from}-${to}` : path.endsWith('.ts') ? path : `${path}/**/*.ts`;

/** Returns true if a mutant starts in one of the lines of `scopes`. */
export const isInScope = ({ file, line }: Result, scopes: readonly Scope[]): boolean =>
  scopes.some(
    ({ path, from = 0, to = Number.POSITIVE_INFINITY }) =>
      (file === path || file.startsWith(`${path}/`)) && from <= line && line <= to,
  );
