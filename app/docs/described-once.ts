import { type Answer, elsewhere, fragment, operations, schemas } from './document';

/*
 * What the document says in several places, and the page in one.
 */

const onlyFirst = <T>(all: readonly T[], key: (each: T) => unknown) =>
  all.filter((each, index) => all.findIndex((other) => key(other) === key(each)) === index);

const calls = operations.filter(({ kind }) => kind === 'path');
const answers = calls.flatMap((call) => call.answers);

/** Answers that several operations give. */
export const sharedAnswers: readonly Answer[] = onlyFirst(
  answers.filter(
    ({ refersTo }) => refersTo && answers.filter((other) => other.refersTo === refersTo).length > 1,
  ),
  ({ refersTo }) => refersTo,
)
  .map((answer) => ({ ...answer, id: fragment(`answer ${answer.refersTo}`) }))
  .toSorted((one, other) => Number(one.status) - Number(other.status));

/** The anchor where an answer is described in full: its own, unless one of the same name stands before it. */
export function homeOf({ id, refersTo }: Answer): string {
  if (refersTo === undefined) return id;
  return [...sharedAnswers, ...answers].find((other) => other.refersTo === refersTo)?.id ?? id;
}

/** Parameters that every operation has. */
export const commonParameters = (calls[0]?.parameters ?? []).filter(({ name }) =>
  calls.every(({ parameters }) => parameters.some((other) => other.name === name)),
);

/** Named values that are no objects. */
export const values = Object.entries(schemas)
  .filter(([, { properties }]) => properties === undefined)
  .map(([name, schema]) => ({ name, schema }));

const allHeaders = [...answers, ...elsewhere].flatMap(({ headers }) =>
  Object.entries(headers).map(([name, header]) => ({ name, ...header })),
);

/** Headers of the answers, each with all forms that it takes. */
export const answerHeaders = onlyFirst(allHeaders, ({ name }) => name).map(({ name, description }) => {
  const same = allHeaders.filter((other) => other.name === name);
  return {
    name,
    description,
    isAlways: same.every(({ required }) => required),
    forms: onlyFirst(
      same.map(({ schema }) => schema),
      ({ pattern }) => pattern,
    ),
  };
});
