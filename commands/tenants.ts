import { closeDatabase } from '#lib/storage/database';
import { runMain } from './command';
import { createLinksProgram } from './links/program';

await runMain(createLinksProgram('tenant'), closeDatabase);
