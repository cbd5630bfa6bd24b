/** A guarantee, and how it is put to the test: `run` rejects if it does not hold. */
export interface Check {
  readonly title: string;
  readonly run: () => Promise<void>;
}

const lines: { readonly check: string; readonly result: string }[] = [];

/** Runs checks one after the other, those that follow a failure too; true if all of them held. */
export async function runChecks(about: string, checks: readonly Check[]): Promise<boolean> {
  let held = true;
  for (const { title, run } of checks) {
    const check = about ? `${about}: ${title}` : title;
    try {
      await run();
      lines.push({ check, result: 'ok' });
      console.log(`ok      ${check}`);
    } catch (error) {
      held = false;
      lines.push({ check, result: 'FAILED' });
      console.log(`FAILED  ${check}\n${error instanceof Error ? error.message : error}`);
    }
  }
  return held;
}

const row = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`;

function table(rows: readonly Readonly<Record<string, string | number>>[]): string {
  const names = Object.keys(rows[0] ?? {});
  const head = [row(names), row(names.map(() => '---'))];
  return [...head, ...rows.map((cells) => row(names.map((name) => cells[name] ?? '')))].join('\n');
}

/** Prints both tables as markdown, that of the functions if they ran. The exit code is 1 unless every check held. */
export function printReport(functions: readonly Readonly<Record<string, string | number>>[]): void {
  const tables = [functions, lines].filter(({ length }) => length > 0).map(table);
  console.log(['', `Node.js ${process.version}`, ...tables].join('\n\n'));
  if (lines.some(({ result }) => result !== 'ok')) process.exitCode = 1;
}
