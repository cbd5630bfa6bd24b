import { test as base, expect } from 'playwright/test';
import { startTestService, type TestService, type TestServiceOptions } from '../service';
import { chromiumOptions } from './chromium';

export { expect };

export interface WorkerOptions {
  /** Options of `service`. */
  readonly serviceOptions: TestServiceOptions;
}

interface WorkerFixtures {
  /** The service of this worker. Relative URLs refer to it. */
  readonly service: TestService;
}

interface TestFixtures {
  /** A test adds the patterns of the errors that it expects, such as the message that the browser logs for a 500 response. */
  readonly expectedErrors: RegExp[];
}

/** Address that the service gets as the address of the console, which is the web page of the emulator. */
export const CONSOLE_URL = 'http://127.0.0.1:3900';

/**
 * A test with a service and a new, signed-out browser context. Fails if a page logs or throws an error that `expectedErrors`
 * does not match, violates its Content-Security-Policy, or sends a request to another machine.
 */
export const test = base.extend<TestFixtures, WorkerOptions & WorkerFixtures>({
  serviceOptions: [{}, { scope: 'worker', option: true }],
  service: [
    async ({ serviceOptions }, use) => {
      const service = await startTestService({
        ...serviceOptions,
        environment: { ...serviceOptions.environment, IDP_CONSOLE_URL: CONSOLE_URL },
      });
      await use(service);
      await service.stop();
    },
    { scope: 'worker', timeout: 90_000 },
  ],
  launchOptions: [
    async ({ launchOptions }, use) => use({ ...launchOptions, ...(await chromiumOptions()) }),
    { scope: 'worker', timeout: 90_000 },
  ],
  baseURL: ({ service }, use) => use(service.url),
  // biome-ignore lint/correctness/noEmptyPattern: Playwright requires this pattern
  expectedErrors: ({}, use) => use([]),
  context: async ({ context, expectedErrors }, use) => {
    const problems: string[] = [];
    const record = (text: string) => {
      if (!expectedErrors.some((pattern) => pattern.test(text))) problems.push(text);
    };
    context.on('console', (message) => {
      if (message.type() === 'error') record(`${message.text()} (${message.location().url})`);
    });
    context.on('weberror', (thrown) => record(`thrown: ${thrown.error().message}`));
    context.on('request', (request) => {
      const { protocol, hostname } = new URL(request.url());
      if (/^(?:https?|wss?):$/.test(protocol) && !/^(?:localhost|127\.0\.0\.1)$/.test(hostname))
        problems.push(`foreign: ${request.url()}`);
    });
    // The browser does not log every violation of the Content-Security-Policy. An example is a blocked `eval` whose error the
    // page catches. This listener therefore throws an error, which the `weberror` listener above records.
    await context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (violation) => {
        const { violatedDirective, blockedURI, sourceFile } = violation;
        throw new Error(`policy: ${violatedDirective} ${blockedURI} in ${sourceFile}`);
      });
    });
    await use(context);
    expect(problems, 'errors and foreign requests of the page').toEqual([]);
  },
});
