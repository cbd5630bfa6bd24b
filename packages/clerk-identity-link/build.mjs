import { buildPackage } from '../build.mjs';

// Scripts, tests and the doctor get a variant of `nextLink`, because Next.js alone has the modules of a request.
const outside = './outside-next.js';
await buildPackage({
  names: ['index', 'next', 'prisma', 'drizzle'],
  others: ['outside-next', 'cli', 'checks'],
  files: ['README.md', 'CHANGELOG.md', 'LICENSE'],
  types: 'types/packages/clerk-identity-link/src',
  conditions: { next: { 'clerk-identity-link': outside, 'react-server': './next.js', default: outside } },
});
