import { appendFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { DOCUMENTED } from '../harness/openapi';

/** Under this name a run of tests hands the folder where its answers are gathered to the processes that run them. */
export const ANSWERS_VARIABLE = 'TESTS_ANSWERS_FOLDER';
/** Which test saw which answer, after a run of all tests of the service. */
const LIST = '.local/documented-answers.txt';

const folderOf = () => process.env[ANSWERS_VARIABLE] ?? '';

/** A line for all processes of this run: each writes to a file of its own. */
export function note(kind: 'file' | 'answer', ...words: readonly string[]): void {
  appendFileSync(path.join(folderOf(), `${process.pid}.tsv`), `${[kind, ...words].join('\t')}\n`);
}

/** Every line of one kind, without what it is of. */
function noted(kind: 'file' | 'answer'): string[][] {
  return readdirSync(folderOf())
    .flatMap((name) => readFileSync(path.join(folderOf(), name), 'utf8').split('\n'))
    .map((line) => line.split('\t'))
    .flatMap(([first, ...words]) => (first === kind ? [words] : []));
}

const SUITE = 'tests/service';

/**
 * After a run of all tests of the service: writes the list, and throws if an answer that the document describes was seen
 * by none of them. After any other run it does nothing.
 */
export function expectAllSeen(): void {
  const ran = new Set(noted('file').map(([file]) => file));
  const suite = readdirSync(SUITE).map((file) => `${SUITE}/${file}`);
  if (!suite.every((file) => ran.has(file))) return;
  const seen = new Map(noted('answer').map(([name = '', test = '']) => [name, test]));
  const lines = DOCUMENTED.map(({ name }) => `${name}: ${seen.get(name) ?? 'NO TEST'}\n`);
  mkdirSync(path.dirname(LIST), { recursive: true });
  writeFileSync(LIST, lines.join(''));
  const missing = DOCUMENTED.filter(({ name }) => !seen.has(name)).map(({ name }) => `  ${name}`);
  if (missing.length === 0) return;
  // Vitest prints what a tear-down throws, and exits with 0.
  process.exitCode = 1;
  throw new Error(`lib/api/openapi.json describes answers that no test has seen:\n${missing.join('\n')}`);
}
