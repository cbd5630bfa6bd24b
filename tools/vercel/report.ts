/** A check of one guarantee. `run` rejects if the guarantee does not hold. */
export interface Check {
  readonly title: string;
  readonly run: () => Promise<void>;
}

const lines: { readonly check: string; readonly result: string }[] = [];

/** Runs all checks one after the other, also after a failure. Returns true if all of them passed. */
export async function runChecks(group: string, checks: readonly Check[]): Promise<boolean> {
  let passed = true;
  for (const { title, run } of checks) {
    const check = group ? `${group}: ${title}` : title;
    try {
      await run();
      lines.push({ check, result: 'ok' });
      console.log(`ok      ${check}`);
    } catch (error) {
      passed = false;
      lines.push({ check, result: 'FAILED' });
      console.log(`FAILED  ${check}\n${error instanceof Error ? error.message : error}`);
    }
  }
  return passed;
}

const row = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`;

function table(rows: readonly Readonly<Record<string, string | number>>[]): string {
  const names = Object.keys(rows[0] ?? {});
  const head = [row(names), row(names.map(() => '---'))];
  return [...head, ...rows.map((cells) => row(names.map((name) => cells[name] ?? '')))].join('\n');
}

/** Prints the functions and the checks as Markdown tables. Sets the exit code to 1 if a check failed. */
export function printReport(functions: readonly Readonly<Record<string, string | number>>[]): void {
  const tables = [functions, lines].filter(({ length }) => length > 0).map(table);
  console.log(['', `Node.js ${process.version}`, ...tables].join('\n\n'));
  if (lines.some(({ result }) => result !== 'ok')) process.exitCode = 1;
}
