import type { TestProject } from 'vitest/node';
import { OLD_SIGNING_SECRET, SIGNING_SECRET } from '../harness/keys';
import { type ServiceProcess, startTestService } from '../harness/service';

declare module 'vitest' {
  interface ProvidedContext {
    readonly service: {
      readonly processes: readonly Pick<ServiceProcess, 'url' | 'pid' | 'outputFile'>[];
      readonly environment: Readonly<Record<string, string>>;
      readonly issuer: string;
    };
  }
}

/** Starts two processes of the service for all test files of a project that do not need a service of their own. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const { processes, environment, idp, stop } = await startTestService({
    processes: 2,
    // The service accepts both secrets, as during a rotation.
    environment: { IDP_WEBHOOK_SIGNING_SECRET: `${OLD_SIGNING_SECRET} ${SIGNING_SECRET}` },
  });
  project.provide('service', {
    processes: processes.map(({ url, pid, outputFile }) => ({ url, pid, outputFile })),
    environment,
    issuer: idp.issuer,
  });
  // Vitest only prints the error of a teardown, and exits with 0.
  return () =>
    stop().catch((error: unknown) => {
      process.exitCode = 1;
      throw error;
    });
}
