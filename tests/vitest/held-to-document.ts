import { afterAll, afterEach, expect } from 'vitest';
import { watchAnswers } from '../harness/answers';
import { judge } from '../harness/openapi';
import { note } from './documented-answers';

// Every answer of the service that reaches a test is one that its API document describes, in status, headers and body.

const wrong = new Set<string>();
const seen = new Set<string>();

watchAnswers((answer) => {
  const verdict = judge(answer);
  if (verdict?.wrong !== undefined) wrong.add(verdict.wrong);
  if (verdict?.is === undefined || seen.has(verdict.is.name)) return;
  const { testPath = '', currentTestName = 'set-up' } = expect.getState();
  seen.add(verdict.is.name);
  note('answer', verdict.is.name, `${testPath.replace(`${process.cwd()}/`, '')} > ${currentTestName}`);
});

function expectNoneWrong(): void {
  const found = [...wrong];
  wrong.clear();
  expect(found, 'answers that are not as documented').toEqual([]);
}

afterEach(expectNoneWrong);
afterAll(() => {
  note('file', (expect.getState().testPath ?? '').replace(`${process.cwd()}/`, ''));
  expectNoneWrong();
});
