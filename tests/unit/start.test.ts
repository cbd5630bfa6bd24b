import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { closeDependencies } from '#lib/concurrency/shutdown-state';
import { setEnvironment } from '#lib/env';
import { log } from '#lib/log';
import { redactConsole } from '#lib/server/redact-console';
import { start } from '#lib/server/start';
import { enableTelemetry } from '#lib/telemetry/with-span';
import { BUILD_TIME_VALUES } from '../harness/build';

const telemetry = vi.hoisted(() => ({ flush: vi.fn(async () => undefined) }));
const startTelemetry = vi.hoisted(() => vi.fn((_settings: object) => telemetry));
vi.mock('#lib/telemetry/sdk', () => ({ startTelemetry }));
vi.mock('#lib/telemetry/with-span', async (original) => ({
  ...(await original<typeof import('#lib/telemetry/with-span')>()),
  enableTelemetry: vi.fn(),
}));
vi.mock('#lib/server/redact-console', () => ({ redactConsole: vi.fn() }));

const LIVE = {
  IDP_SECRET_KEY: 'sk_live_0123456789',
  IDP_PUBLISHABLE_KEY: `pk_live_${Buffer.from('clerk.example$').toString('base64')}`,
};
const ENDPOINT = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:4318/v1/traces' };
const setVariables = (changes: Readonly<Record<string, string>> = {}) => {
  const otel = { OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '' };
  const optional = { IDP_AUTHORIZED_PARTIES: '' };
  for (const [name, value] of Object.entries({ ...BUILD_TIME_VALUES, ...optional, ...otel, ...changes }))
    vi.stubEnv(name, value);
};

let warn = vi.spyOn(log, 'warn');
beforeEach(() => {
  vi.clearAllMocks();
  warn = vi.spyOn(log, 'warn').mockReturnValue();
  setEnvironment(undefined);
});
afterEach(() => {
  setEnvironment(undefined);
  vi.unstubAllEnvs();
});

test('With a valid environment and no OTLP endpoint, start() replaces the console output of libraries with log lines, logs no warning and starts no telemetry', async () => {
  setVariables();
  await start();
  expect(redactConsole).toHaveBeenCalledTimes(1);
  expect([warn.mock.calls, startTelemetry.mock.calls, vi.mocked(enableTelemetry).mock.calls]).toEqual([
    [],
    [],
    [],
  ]);
});

test('start() logs a warning if the keys are live and IDP_AUTHORIZED_PARTIES is not set', async () => {
  setVariables(LIVE);
  await start();
  expect(warn).toHaveBeenCalledExactlyOnceWith(
    'IDP_AUTHORIZED_PARTIES is not set: the service accepts sessions of every subdomain of your domain',
  );
});

test('start() logs no warning if the keys are live and IDP_AUTHORIZED_PARTIES is set', async () => {
  setVariables({ ...LIVE, IDP_AUTHORIZED_PARTIES: 'https://app.example' });
  await start();
  expect(warn).not.toHaveBeenCalled();
});

test.each([
  [
    'a variable is invalid',
    (): unknown => setVariables({ DATABASE_URL: 'x' }),
    /^Invalid environment variables:\n {2}- DATABASE_URL must be a postgresql:\/\/ URL\n$/,
  ],
  [
    'any other error occurs',
    () => {
      setVariables();
      vi.spyOn(log, 'warn').mockImplementation(() => {
        throw new Error('hidden');
      });
      for (const [name, value] of Object.entries(LIVE)) vi.stubEnv(name, value);
    },
    /^Start-up failed\n$/,
  ],
])('start() prints a message and exits the process with code 1 if %s', async (_what, prepare, message) => {
  prepare();
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => {
    throw new Error('exited');
  });
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    await expect(start()).rejects.toThrow('exited');
    expect(exit).toHaveBeenCalledExactlyOnceWith(1);
    expect(write.mock.calls[0]?.[0]).toMatch(message);
  } finally {
    exit.mockRestore();
    write.mockRestore();
  }
});

test('With an OTLP endpoint, telemetry starts, and a shutdown exports the remaining data', async () => {
  setVariables(ENDPOINT);
  await start();
  expect(startTelemetry).toHaveBeenCalledExactlyOnceWith({ traces: true, metrics: false });
  expect(enableTelemetry).toHaveBeenCalledExactlyOnceWith(telemetry);
  expect(telemetry.flush).not.toHaveBeenCalled();
  await closeDependencies();
  expect(telemetry.flush).toHaveBeenCalledTimes(1);
});

test('If telemetry fails to start, start() logs a warning and continues without telemetry', async () => {
  setVariables(ENDPOINT);
  startTelemetry.mockImplementationOnce(() => {
    throw new TypeError('no exporter');
  });
  await start();
  expect(warn).toHaveBeenCalledExactlyOnceWith(
    { error: expect.objectContaining({ name: 'TypeError' }) },
    'telemetry could not be started',
  );
  expect(enableTelemetry).not.toHaveBeenCalled();
});
