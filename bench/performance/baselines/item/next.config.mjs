import path from 'node:path';

export default {
  turbopack: { root: path.resolve(import.meta.dirname, '..') },
  // npm run registry:test checks the types of the items.
  typescript: { ignoreBuildErrors: true },
};
