import { examineCache } from './cache';
import type { Examined } from './check';
import { examineDatabase } from './database';
import { examineDeployed } from './deployed';
import { examineProvider } from './provider';
import { examineVariables } from './variables';

export interface ExamineOptions {
  /** Of the deployed service, which is then asked too. */
  readonly origin?: string | undefined;
  /** The local stack's database has one role for everything, and its first answers take long. */
  readonly isLocal: boolean;
}

/** Makes every check of this process's environment, of the deployed service too if told, and changes nothing in it. */
export async function examine({ origin, isLocal }: ExamineOptions): Promise<Examined[]> {
  // Alone: its bound is so short that what else this process does would count.
  const cache = await examineCache();
  const [provider, database, deployed] = await Promise.all([
    examineProvider(),
    examineDatabase(isLocal),
    origin === undefined ? [] : examineDeployed(origin, isLocal),
  ]);
  return [...examineVariables(process.env), ...provider, ...database, ...cache, ...deployed];
}
