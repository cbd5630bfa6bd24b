import { spawn } from 'node:child_process';
import { type BrowserContext, chromium } from 'playwright';
import { z } from 'zod';
import { withService } from '../../bench/with-service';
import { freePort } from '../../dev/system/listen';
import { endProcess, killOnExit } from '../../dev/system/processes';
import { PASSWORD, shownLink, signIn } from '../../tests/harness/browser/browser';
import { chromiumOptions } from '../../tests/harness/browser/chromium';

/**
 * `npm run lighthouse`: runs the accessibility and best-practices audits of Lighthouse on the pages of the production
 * build. Exits with 1 if a score is below 100. npx downloads Lighthouse, because it is too large for a dependency. Newer
 * versions of Lighthouse do not run on Node.js 20, which this project supports.
 */
const LIGHTHOUSE = 'lighthouse@12.8.2';
const CATEGORIES = ['accessibility', 'best-practices'];
const AUDIT_MILLISECONDS = 300_000;
const EMAIL = 'lighthouse@example.com';

const Report = z.object({
  finalDisplayedUrl: z.string(),
  categories: z.record(
    z.string(),
    z.object({
      score: z.number().nullable(),
      auditRefs: z.array(z.object({ id: z.string(), weight: z.number() })),
    }),
  ),
  audits: z.record(z.string(), z.object({ score: z.number().nullable(), title: z.string() })),
});

/** Launches the browser with a debugging port, so that Lighthouse can use the same profile and cookies. */
async function launchWithDebugPort(port: number, baseURL: string): Promise<BrowserContext> {
  const { args = [], ...options } = await chromiumOptions();
  return chromium.launchPersistentContext('', {
    ...options,
    baseURL,
    args: [...args, `--remote-debugging-port=${port}`],
    handleSIGINT: false,
    handleSIGTERM: false,
  });
}

/** Runs Lighthouse in the browser at the debugging port, with the cookies of that browser. */
async function audit(url: string, port: number): Promise<z.infer<typeof Report>> {
  const child = spawn(
    'npx',
    [
      ...['--yes', LIGHTHOUSE, url, `--port=${port}`, '--disable-storage-reset'],
      ...[
        `--only-categories=${CATEGORIES.join()}`,
        '--output=json',
        '--quiet',
        '--no-enable-error-reporting',
      ],
    ],
    { detached: true, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  if (child.pid === undefined) throw new Error('Cannot run npx.');
  const group = -child.pid;
  const release = killOnExit(group, 'SIGTERM');
  const timeout = setTimeout(() => void endProcess(group, []), AUDIT_MILLISECONDS);
  try {
    const chunks: Buffer[] = [];
    for await (const chunk of child.stdout) chunks.push(Buffer.from(chunk));
    return Report.parse(JSON.parse(Buffer.concat(chunks).toString()));
  } catch (cause) {
    throw new Error(`Lighthouse did not report on ${url}.`, { cause });
  } finally {
    clearTimeout(timeout);
    await endProcess(group, []);
    release();
  }
}

/** Returns the audits that lower a score. */
function failedAudits({ categories, audits }: z.infer<typeof Report>): string[] {
  return Object.values(categories)
    .flatMap(({ auditRefs }) => auditRefs)
    .filter(({ id, weight }) => weight > 0 && (audits[id]?.score ?? 1) < 1)
    .map(({ id }) => `${id}: ${audits[id]?.title}`);
}

await withService({}, async (service) => {
  service.idp.createUser({ email: EMAIL, password: PASSWORD });
  const port = await freePort();
  const context = await launchWithDebugPort(port, service.url);
  try {
    const page = await context.newPage();
    const table: Record<string, Record<string, number>> = {};
    for (const path of ['/', '/docs', '/sign-in', '/account']) {
      if (path === '/account') {
        await signIn(page, EMAIL);
        await shownLink(page);
      }
      const report = await audit(`${service.url}${path}`, port);
      if (report.finalDisplayedUrl !== `${service.url}${path}`) {
        throw new Error(`${path} redirected to ${report.finalDisplayedUrl}.`);
      }
      table[path] = Object.fromEntries(
        CATEGORIES.map((name) => [name, Math.round((report.categories[name]?.score ?? 0) * 100)]),
      );
      for (const failed of failedAudits(report)) console.error(`${path}: ${failed}`);
    }
    console.table(table);
    const perfect = Object.values(table).every((scores) =>
      Object.values(scores).every((each) => each === 100),
    );
    if (!perfect) process.exitCode = 1;
  } finally {
    await context.close();
  }
});
