/** A check of one property of the deployed build. `run` rejects if the build does not have the property. */
export interface Check {
  readonly title: string;
  readonly run: () => Promise<void>;
}

const lines: { readonly check: string; readonly result: string }[] = [];

/** Runs the checks one after the other. Continues after a check has failed. Returns true if all checks passed. */
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

/**
 * Prints two Markdown tables: the measurements of the deployed functions (`functions`) and the results of the checks. Sets the
 * exit code to 1 if a check failed.
 */
export function printReport(functions: readonly Readonly<Record<string, string | number>>[]): void {
  const tables = [functions, lines].filter(({ length }) => length > 0).map(table);
  console.log(['', `Node.js ${process.version}`, ...tables].join('\n\n'));
  if (lines.some(({ result }) => result !== 'ok')) process.exitCode = 1;
}
