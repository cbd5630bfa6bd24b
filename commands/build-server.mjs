import { readFileSync } from 'node:fs';
import { env } from 'node:process';
import { build } from 'esbuild';

const folder = env['NEXT_DIST_DIR'] ?? '.next';
const { config } = JSON.parse(readFileSync(`${folder}/required-server-files.json`, 'utf8'));

// Compiles server.ts during `npm run build`, so that `npm start` does not need a compiler.
await build({
  entryPoints: ['server.ts'],
  outfile: `${folder}/server.mjs`,
  bundle: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  define: {
    'process.env.NODE_ENV': '"production"',
    'process.env.APP_FILES': JSON.stringify(config.env.APP_FILES),
  },
});
