import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { findProse } from './prose';

/**
 * `npm run check:prose [-- <path>...]`: searches Markdown, comments and test titles for the phrases that tools/prose.ts lists.
 * Exits with 1 if it finds one.
 */
const SOURCE = /\.(?:md|[cm]?[jt]sx?|prisma)$/;

const tracked = execFileSync('git', ['ls-files', '--', ...process.argv.slice(2)], { encoding: 'utf8' });
const findings = tracked
  .split('\n')
  .filter((file) => SOURCE.test(file))
  .flatMap((file) =>
    findProse(file, readFileSync(file, 'utf8')).map(
      ({ line, found, write }) => `${file}:${line}: "${found}": write ${write}\n`,
    ),
  );
process.stdout.write(findings.join(''));
if (findings.length > 0) {
  process.stderr.write(`${findings.length} findings\n`);
  process.exit(1);
}
