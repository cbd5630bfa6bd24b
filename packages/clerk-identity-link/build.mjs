import { readFileSync, writeFileSync } from 'node:fs';
import { buildPackage } from '../build.mjs';

// Scripts, tests and the doctor get a variant of `nextLink`, because Next.js alone has the modules of a request.
const outside = './outside-next.js';
await buildPackage({
  names: ['index', 'next', 'prisma', 'drizzle'],
  others: ['outside-next', 'unsupported', 'cli', 'checks'],
  files: ['README.md', 'CHANGELOG.md', 'LICENSE'],
  types: 'types/packages/clerk-identity-link/src',
  conditions: {
    next: {
      'clerk-identity-link': outside,
      'edge-light': './unsupported.js',
      browser: './unsupported.js',
      'react-server': './next.js',
      default: outside,
    },
  },
});
// The guide is in the tarball, without links to other files of this repository.
const guide = readFileSync('../../docs/existing-app.md', 'utf8').replaceAll(
  '(../packages/clerk-identity-link/',
  '(',
);
writeFileSync('dist/GUIDE.md', guide.replaceAll(/\[([^\]]*)\]\(\.\.[^)]*\)/g, '$1'));
