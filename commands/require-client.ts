import { existsSync } from 'node:fs';

// Runs before the modules of an entry are loaded, because a missing module would end it with a stack trace.
if (!existsSync(new URL('../lib/generated/prisma', import.meta.url))) {
  process.stderr.write(
    'The database client is missing, as after npm ci --ignore-scripts. Run: npx prisma generate\n',
  );
  process.exit(1);
}
