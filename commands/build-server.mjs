import { env } from 'node:process';
import { build } from 'esbuild';

// Compiles server.ts during `npm run build`, so that `npm start` does not need a compiler.
await build({
  entryPoints: ['server.ts'],
  outfile: `${env['NEXT_DIST_DIR'] ?? '.next'}/server.mjs`,
  bundle: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  define: { 'process.env.NODE_ENV': '"production"' },
});
