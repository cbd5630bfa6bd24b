import { withTimeout } from '../concurrency/with-timeout';
import { describeError } from '../errors/describe-error';

/** What a check came to, in words that hold no secret. Whatever is not well has a remedy, in one line. */
export type Finding =
  | { readonly status: 'ok' | 'skipped'; readonly finding: string }
  | { readonly status: 'warning' | 'failure'; readonly finding: string; readonly remedy: string };

/** A finding, and of what. */
export type Examined = Finding & { readonly name: string };

export const ok = (finding: string): Finding => ({ status: 'ok', finding });
export const skipped = (finding: string): Finding => ({ status: 'skipped', finding });
export const warning = (finding: string, remedy: string): Finding => ({ status: 'warning', finding, remedy });
export const failure = (finding: string, remedy: string): Finding => ({ status: 'failure', finding, remedy });

/** How long a check may take, however many questions it asks. */
export const BOUND_MS = 5_000;

/** What others made of an error, by which it is told; never its message, which may quote what nobody should read. */
export function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  const { name, code, message, cause } = describeError(error);
  return code ?? cause?.code ?? message ?? name;
}

/** What the work comes to, or why it did not come to anything within the bound. It never throws. */
export async function attempt<T>(
  work: () => Promise<T>,
  explain: (error: unknown) => Finding,
  milliseconds = BOUND_MS,
): Promise<{ readonly value: T } | { readonly fault: Finding }> {
  try {
    return { value: await withTimeout(milliseconds, work()) };
  } catch (error) {
    return { fault: explain(error) };
  }
}

/** One row: what the check finds, or that it could not be made. It ends within the bound, and never throws. */
export async function check(
  name: string,
  examine: () => Finding | Promise<Finding>,
  milliseconds = BOUND_MS,
): Promise<Examined> {
  const unable = (error: unknown) =>
    failure(
      `could not be found out (${codeOf(error)})`,
      'Run this again; if it stays so, report it as a bug',
    );
  const came = await attempt(async () => examine(), unable, milliseconds);
  const found: Finding = 'value' in came ? came.value : came.fault;
  return { name, ...found };
}

/** How long the work takes, in whole milliseconds: the median of so many rounds, one after the other. */
export async function median(rounds: number, work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const begun = performance.now();
    await work();
    times.push(performance.now() - begun);
  }
  return Math.round(times.toSorted((one, other) => one - other)[Math.floor(rounds / 2)] ?? 0);
}
