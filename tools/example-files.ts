import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export const EXAMPLE = 'examples/projects';

/**
 * Relation fields for the Prisma model User. Prisma requires these fields because the models of the example refer to User. The
 * fields create no columns.
 */
const RELATIONS = `  projectMembers ProjectMember[]
  projectNotes   ProjectNote[]
`;

/**
 * Copies the files of the example into `folder`, a copy of the checkout. Adds `RELATIONS` to the model User in the Prisma
 * schema of this copy.
 */
export function addExample(folder: string): void {
  cpSync(EXAMPLE, folder, { recursive: true });
  const schema = path.join(folder, 'prisma/schema.prisma');
  const present = readFileSync(schema, 'utf8');
  const changed = present.replace('\n  @@map("users")', `${RELATIONS}\n  @@map("users")`);
  if (changed === present) throw new Error('prisma/schema.prisma has no model with @@map("users").');
  writeFileSync(schema, changed);
}
