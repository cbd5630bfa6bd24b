import { appendFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { DOCUMENTED } from '../harness/openapi';

/** Name of the environment variable that contains the folder for recorded responses. Test workers inherit it. */
export const RESPONSES_FOLDER_VARIABLE = 'TESTS_RESPONSES_FOLDER';
/** File that lists each documented response and a test that received it. It is written after all files in tests/service ran. */
const LIST = '.local/documented-responses.txt';

const folderOf = () => process.env[RESPONSES_FOLDER_VARIABLE] ?? '';

/**
 * Adds a line to the records. A line of the kind `file` names a test file that ran. A line of the kind `response` names a
 * documented response and the test that received it. Each process appends its lines to a file of its own.
 */
export function record(kind: 'file' | 'response', ...fields: readonly string[]): void {
  appendFileSync(path.join(folderOf(), `${process.pid}.tsv`), `${[kind, ...fields].join('\t')}\n`);
}

/** Returns the fields of each line of one kind. Reads the lines of all processes. */
function recorded(kind: 'file' | 'response'): string[][] {
  return readdirSync(folderOf())
    .flatMap((name) => readFileSync(path.join(folderOf(), name), 'utf8').split('\n'))
    .map((line) => line.split('\t'))
    .flatMap(([first, ...fields]) => (first === kind ? [fields] : []));
}

const SUITE = 'tests/service';

/**
 * Writes the list of documented responses if all files in tests/service ran. Then throws if there is a documented response that
 * no test received. Returns without a check if one of these files did not run.
 */
export function expectAllDocumentedSeen(): void {
  const ran = new Set(recorded('file').map(([file]) => file));
  const suite = readdirSync(SUITE).map((file) => `${SUITE}/${file}`);
  if (!suite.every((file) => ran.has(file))) return;
  const seen = new Map(recorded('response').map(([name = '', test = '']) => [name, test]));
  const lines = DOCUMENTED.map(({ name }) => `${name}: ${seen.get(name) ?? 'NO TEST'}\n`);
  mkdirSync(path.dirname(LIST), { recursive: true });
  writeFileSync(LIST, lines.join(''));
  const missing = DOCUMENTED.filter(({ name }) => !seen.has(name)).map(({ name }) => `  ${name}`);
  if (missing.length === 0) return;
  // Vitest runs this function after all tests, as a global teardown (prepare-services.ts). Vitest prints the error of a
  // teardown, but the error does not change the exit code.
  process.exitCode = 1;
  throw new Error(`lib/api/openapi.json describes responses that no test received:\n${missing.join('\n')}`);
}
