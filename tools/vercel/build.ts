import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { withoutServiceVariables } from '../../tests/harness/build';
import { addExample } from '../example-files';

const execute = promisify(execFile);

/**
 * Versions of the Vercel CLI and of its dependency `sandbox`. The version of `sandbox` overrides the one that the CLI requests,
 * because some registries lack the requested version.
 */
const VERSIONS = { vercel: '64.0.2', sandbox: '4.5.0' } as const;
const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
/** Folder of the CLI (360 MB). All runs share it. */
const TOOL = path.join(PROJECT, '.local', `vercel-${VERSIONS.vercel}`);

const FETCH_MILLISECONDS = 600_000;
const BUILD_MILLISECONDS = 900_000;

/** Installs the CLI if necessary. A failed installation leaves no files. */
export async function installTool(): Promise<void> {
  if (existsSync(TOOL)) return;
  mkdirSync(path.dirname(TOOL), { recursive: true });
  const unfinished = mkdtempSync(`${TOOL}-`);
  try {
    const { vercel, sandbox } = VERSIONS;
    const manifest = { private: true, dependencies: { vercel }, overrides: { sandbox } };
    writeFileSync(path.join(unfinished, 'package.json'), JSON.stringify(manifest));
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    await execute('npm', ['install', ...options], { cwd: unfinished, timeout: FETCH_MILLISECONDS });
    renameSync(unfinished, TOOL);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/** Copies all files of the project that git does not ignore, and node_modules. Adds the settings of a Vercel project. */
export async function copyTree(into: string): Promise<void> {
  mkdirSync(into);
  const list = ['ls-files', '--cached', '--others', '--exclude-standard', '-z'];
  const { stdout } = await execute('git', list, { cwd: PROJECT, maxBuffer: 2 ** 24 });
  const files = stdout.split('\0').filter((file) => file !== '' && existsSync(path.join(PROJECT, file)));
  await execute('cp', ['--parents', '-a', '-t', into, ...files], { cwd: PROJECT });
  await execute('cp', ['-a', path.join(PROJECT, 'node_modules'), into]);
  mkdirSync(path.join(into, '.vercel'));
  // The ids of the project and of the team are placeholders. The packages are already installed, so the installation only runs
  // the postinstall script.
  const settings = { framework: 'nextjs', installCommand: 'npm run postinstall' };
  const project = { projectId: 'prj_nobody', orgId: 'team_nobody', settings };
  writeFileSync(path.join(into, '.vercel', 'project.json'), JSON.stringify(project));
}

/** Adds the example application (examples/projects) to a copy of the project, as `npm run example` does. */
export async function addExampleTo(folder: string): Promise<void> {
  addExample(folder);
  await execute('npm', ['run', '--silent', 'routes'], { cwd: folder });
}

export interface Build {
  readonly succeeded: boolean;
  readonly output: string;
}

/** Runs `vercel build` in a copy of the project. Writes the result to `.vercel/output`. */
export async function buildForPlatform(
  folder: string,
  environment: Readonly<Record<string, string>>,
): Promise<Build> {
  const args = ['build', '--prod', '--standalone', '--yes', '--token', 'none'];
  const ran = execute(
    path.join(TOOL, 'node_modules', '.bin', 'vercel'),
    [...args, '--global-config', `${folder}-config`],
    {
      cwd: folder,
      // The build needs no network access. The proxy address makes every HTTPS request fail instead of reaching the network.
      env: {
        ...withoutServiceVariables(),
        ...environment,
        VERCEL_TELEMETRY_DISABLED: '1',
        HTTPS_PROXY: 'http://127.0.0.1:9',
        npm_config_offline: 'true',
      },
      timeout: BUILD_MILLISECONDS,
      maxBuffer: 2 ** 24,
    },
  );
  const joinOutput = ({ stdout, stderr }: { stdout?: unknown; stderr?: unknown }) => `${stdout}\n${stderr}`;
  return ran.then(
    (written) => ({ succeeded: true, output: joinOutput(written) }),
    (error) => ({ succeeded: false, output: joinOutput(error) }),
  );
}
