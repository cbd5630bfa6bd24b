// `<package> [<arguments of npm publish>]`: checks the built package and publishes it. `--dry-run` stops before the upload.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const MAX_TARBALL_BYTES = { 'clerk-emulator': 250_000, 'clerk-identity-link': 60_000 };
const [name, ...args] = process.argv.slice(2);
process.chdir(fileURLToPath(new URL(name, import.meta.url)));
const run = (command, ...given) => execFileSync(command, given, { cwd: 'dist', stdio: 'inherit' });

const { version } = JSON.parse(readFileSync('dist/package.json', 'utf8'));
const { GITHUB_REF_TYPE: type, GITHUB_REF_NAME: tag } = process.env;
if (type === 'tag' && tag !== `${name}@${version}`) {
  throw new Error(`The tag is ${tag}, but the version in package.json is ${version}.`);
}
run('npx', '--yes', 'publint@0.3.25', '--strict');
run('npx', '--yes', '@arethetypeswrong/cli@0.18.5', '--pack', '.', '--profile', 'esm-only');
const packed = execFileSync('npm', ['pack', '--dry-run', '--json'], { cwd: 'dist', encoding: 'utf8' });
const [{ size }] = JSON.parse(packed);
if (!(size <= MAX_TARBALL_BYTES[name]))
  throw new Error(`The tarball has ${size} bytes, more than ${MAX_TARBALL_BYTES[name]}.`);
run('npm', 'publish', ...args);
