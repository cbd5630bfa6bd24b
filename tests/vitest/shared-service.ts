import { signingKey } from 'clerk-emulator';
import { afterAll, inject } from 'vitest';
import { accessDatabase } from '../harness/dependencies/database';
import { SIGNING_KEY_PEM } from '../harness/dependencies/signing-key';
import { readOutput, type ServiceAccess } from '../harness/service';

/**
 * Returns the service that `start-service.ts` has started. Other test files use it at the same time. A test therefore uses users
 * of its own, and does not change or stop a dependency.
 */
export function sharedService(): ServiceAccess {
  const { processes, environment, issuer } = inject('service');
  const database = accessDatabase(environment['DATABASE_URL'] ?? '');
  afterAll(() => database.pool.end());
  return {
    url: processes[0]?.url ?? '',
    processes,
    environment,
    idp: { issuer, signingKey: signingKey(SIGNING_KEY_PEM) },
    database,
    ...readOutput(processes),
  };
}
