#!/usr/bin/env node
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { startEmulator } from './emulator';
import { messageOf } from './errors';
import { Settings } from './instance/settings';
import { runCommand } from './run-command';
import { readFile, Seed } from './seed';
import { CLERK_JS_5_PATH, CLERK_JS_PATH, securityPolicy } from './variables';

const USAGE = `Usage: clerk-emulator [options]
       clerk-emulator dev [options] -- <command> [arguments]
       clerk-emulator token <user id> [<organization id>]
The first two forms start an emulator. The first form prints the environment variables that an application needs. The second form
sets them for a command, and the emulator stops when the command ends. The third form needs these variables. It prints a session
token of a user, with an active organization if you name one.

  --port <number>             port of the Backend API, Frontend API and account portal (default: 4400)
  --console-port <number>     preferred port of the console (default: 4401)
  --publishable-key <key>     pk_test_… or pk_live_… (default: the key of a development instance)
  --secret-key <key>          secret key of the Backend API (default: a new one)
  --webhook-url <url>         endpoint for webhooks (default: none)
  --webhook-secret <secret>   signing secret of --webhook-url, whsec_… (default: a new one)
  --retry-scale <factor>      factor for the delays of the webhook retry schedule (default: 1)
  --settings <file>           JSON or YAML file with settings of the instance, such as its roles (default: none)
  --seed <file>               JSON or YAML file with settings, users and organizations (default: none)
  --data-file <file>          file that keeps the data across restarts (default: none, data only in memory)
  --clerk-js-folder <folder>  cache folder of clerk-js (default: node_modules/.cache/clerk-emulator)
  --help                      print this text`;

const Manifest = z.object({ dependencies: z.record(z.string(), z.string()).default({}) });
const Created = z.object({ id: z.string(), jwt: z.string() }).partial();

function readOptions(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    options: {
      port: { type: 'string', default: '4400' },
      'console-port': { type: 'string', default: '4401' },
      'publishable-key': { type: 'string' },
      'secret-key': { type: 'string' },
      'webhook-url': { type: 'string' },
      'webhook-secret': { type: 'string', default: `whsec_${randomBytes(32).toString('base64')}` },
      'retry-scale': { type: 'string', default: '1' },
      settings: { type: 'string' },
      seed: { type: 'string' },
      'data-file': { type: 'string' },
      'clerk-js-folder': { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  }).values;
}

/** Splits the arguments into the options and, after `dev`, the command. */
function readArguments(args: readonly string[]) {
  if (args[0] !== 'dev') return { options: readOptions(args), command: undefined };
  const separator = args.includes('--') ? args.indexOf('--') : args.length;
  return { options: readOptions(args.slice(1, separator)), command: args.slice(separator + 1) };
}

function parseNumber(name: string, text: string, isValid: (value: number) => boolean): number {
  const value = Number(text);
  if (text.trim() === '' || !isValid(value)) throw new Error(`--${name}: ${text} is not valid.\n${USAGE}`);
  return value;
}

const isPort = (value: number) => Number.isInteger(value) && value >= 0 && value <= 65_535;
const isFactor = (value: number) => value > 0 && value <= 1;

/** Exempts this machine from a proxy, for this process and for the command that it runs. */
function exemptLoopback(): void {
  const { NO_PROXY, no_proxy = NO_PROXY } = process.env;
  const exempt = [no_proxy, 'localhost', '127.0.0.1'].filter(Boolean).join(',');
  Object.assign(process.env, { NO_PROXY: exempt, no_proxy: exempt });
}

/** Starts an emulator. Runs a command with the environment variables of the SDKs, or prints these variables. */
async function main(): Promise<void> {
  exemptLoopback();
  if (process.argv[2] === 'token') return printToken(process.argv.slice(3));
  const { options, command } = readArguments(process.argv.slice(2));
  if (options.help) return console.log(USAGE);
  if (command?.length === 0) throw new Error(`dev needs a command after --.\n${USAGE}`);
  const { 'webhook-url': webhookUrl, 'webhook-secret': secret } = options;
  const seed = options.seed === undefined ? undefined : readFile(options.seed, Seed);
  if (options.settings && seed?.settings)
    throw new Error('Pass --settings or a seed with settings, not both.');
  const emulator = await startEmulator({
    ...(options.settings && readFile(options.settings, Settings.strict())),
    seed,
    port: parseNumber('port', options.port, isPort),
    console: { preferredPort: parseNumber('console-port', options['console-port'], isPort) },
    publishableKey: options['publishable-key'],
    secretKey: options['secret-key'],
    retryScale: parseNumber('retry-scale', options['retry-scale'], isFactor),
    webhook: webhookUrl === undefined ? undefined : { url: webhookUrl, secret },
    dataFile: options['data-file'],
    clerkJsFolder: options['clerk-js-folder'],
  });
  stopWithParent();
  const { consoleUrl, url } = emulator;
  const variables = adaptToApplication(emulator.variables);
  if (command === undefined) {
    const stop = () => void emulator.stop().then(() => process.exit(0), fail);
    process.once('SIGINT', stop).once('SIGTERM', stop);
    for (const [name, value] of Object.entries(variables)) console.log(`${name}=${quote(value)}`);
    console.log(`# Console: ${consoleUrl}`);
    console.log(`# OAuth: ${url}/.well-known/oauth-authorization-server`);
    console.log(`# Content-Security-Policy: ${securityPolicy(url)}`);
    return;
  }
  console.error(`clerk-emulator: ${url}, console: ${consoleUrl}`);
  console.error(`If the application has a Content-Security-Policy, allow: ${securityPolicy(url)}`);
  const code = await runCommand(command, variables).finally(() => emulator.stop());
  process.exit(code);
}

/** Prints a session token of a user. The Backend API of the running emulator creates the session and the token. */
async function printToken([userId, organizationId]: readonly string[]): Promise<void> {
  const { CLERK_API_URL: url, CLERK_SECRET_KEY: secretKey } = process.env;
  if (!userId || !url || !secretKey)
    throw new Error(`token needs a user id, CLERK_API_URL and CLERK_SECRET_KEY.\n${USAGE}`);
  const headers = { authorization: `Bearer ${secretKey}`, 'content-type': 'application/json' };
  const post = async (path: string, fields = {}) => {
    const body = JSON.stringify(fields);
    const response = await fetch(`${url}/v1/sessions${path}`, { method: 'POST', headers, body });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return Created.parse(await response.json());
  };
  const { id } = await post('', { user_id: userId, active_organization_id: organizationId });
  console.log((await post(`/${id}/tokens`)).jwt);
}

/** Stops this process when its parent ends, because npm and npx pass a signal only to the shell that runs this process. */
function stopWithParent(): void {
  const { ppid } = process;
  if (process.env['npm_execpath'] === undefined) return;
  const timer = setInterval(() => {
    if (process.ppid === ppid) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, 250);
  timer.unref();
}

/** Removes the addresses of pages that the application in this folder sets itself. Selects its version of clerk-js. */
function adaptToApplication(variables: Readonly<Record<string, string>>): Record<string, string> {
  const files = readdirSync('.').filter((file) =>
    /^\.env(\.(local|development|development\.local))?$/.test(file),
  );
  const settings = files.map((file) => readFileSync(file, 'utf8')).join('\n');
  const isOwn = (name: string) =>
    /CLERK_SIGN_(IN|UP)_URL$/.test(name) &&
    (process.env[name] !== undefined || new RegExp(`^(export\\s+)?${name}=`, 'm').test(settings));
  const script = hasOldSdk() ? CLERK_JS_5_PATH : CLERK_JS_PATH;
  return Object.fromEntries(
    Object.entries(variables)
      .filter(([name]) => !isOwn(name))
      .map(([name, value]) => [name, value.replace(CLERK_JS_PATH, script)]),
  );
}

/** Returns true if an SDK of this application, or of its monorepo, needs clerk-js 5: it depends on @clerk/shared 3 or less. */
function hasOldSdk(): boolean {
  const folders = createRequire(path.resolve('package.json')).resolve.paths('@clerk') ?? [];
  const folder = folders.map((each) => path.join(each, '@clerk')).find((each) => existsSync(each));
  return (folder === undefined ? [] : readdirSync(folder)).some((name) => {
    const manifest = path.join(folder ?? '', name, 'package.json');
    const text = existsSync(manifest) ? readFileSync(manifest, 'utf8') : '{}';
    return /^\D?[0-3]\./.test(Manifest.parse(JSON.parse(text)).dependencies['@clerk/shared'] ?? '');
  });
}

/** Quotes a value with line breaks, so that it fits into one line of an .env file. */
const quote = (value: string) => (value.includes('\n') ? JSON.stringify(value) : value);

function fail(error: unknown): void {
  console.error(messageOf(error));
  process.exit(1);
}

main().catch(fail);
