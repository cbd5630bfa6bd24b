import { closeDatabase } from '#lib/storage/database';
import { runMain } from './command';
import { createUsersProgram } from './users/program';

await runMain(createUsersProgram(), closeDatabase);
