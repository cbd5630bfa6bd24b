import { readFileSync, writeFileSync } from 'node:fs';
import { parse } from 'yaml';
import { startEmulator } from './dist/index.js';

// Writes the matrix of README.md: node matrix.mjs <document of the Frontend API> <document of the Backend API>
// The documents are fapi/<version>.yml and bapi/<version>.yml of https://github.com/clerk/openapi-specs.

const LACKING = /operation_not_emulated|authentication_invalid|resource_not_found.*"\w+ \/\S+ was not found/;
const emulator = await startEmulator();
const authorization = `Bearer ${emulator.variables.CLERK_SECRET_KEY}`;
const apis = [
  { file: process.argv[2], prefix: '', headers: {} },
  { file: process.argv[3], prefix: '/v1', headers: { authorization } },
];
const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

/** Returns a feature for each tag of Clerk's documents, with its emulated and all operations in both APIs. */
async function readFeatures() {
  const features = new Map();
  for (const [index, { file, prefix, headers }] of apis.entries()) {
    const { paths } = parse(readFileSync(file, 'utf8'), { maxAliasCount: -1 });
    for (const [path, operations] of Object.entries(paths)) {
      for (const method of METHODS.filter((each) => operations[each]?.tags)) {
        const url = emulator.url + prefix + path.replace(/\{[^}]*\}/g, 'x');
        const response = await fetch(url, { method: method.toUpperCase(), headers, redirect: 'manual' });
        const isEmulated = !LACKING.test(await response.text());
        const [tag] = operations[method].tags;
        const counts = features.get(tag) ?? [
          [0, 0],
          [0, 0],
        ];
        counts[index][0] += isEmulated;
        counts[index][1] += 1;
        features.set(tag, counts);
      }
    }
  }
  return features;
}

const features = [...(await readFeatures())].sort();
await emulator.stop();
const rows = ['Frontend API', 'Backend API'].map((api, index) => {
  const counts = features.map(([tag, { [index]: count }]) => ({ tag, emulated: count[0], all: count[1] }));
  const complete = counts.filter(({ emulated, all }) => emulated > 0 && emulated === all);
  const partial = counts.filter(({ emulated, all }) => emulated > 0 && emulated < all);
  const names = complete.map(({ tag }) => tag).join(', ');
  return `| ${api} | ${names} | ${partial.map(({ tag, emulated, all }) => `${tag} (${emulated} of ${all})`).join(', ')} |`;
});
const table = ['| | All operations | Some operations |', '| --- | --- | --- |', ...rows].join('\n');
const readme = readFileSync('README.md', 'utf8');
const matrix = `<!-- matrix of ${emulator.operations.length} operations -->\n${table}\n<!-- end -->`;
writeFileSync(
  'README.md',
  readme.replace(/<!-- (operations|matrix)[\s\S]*<!-- end -->/, () => matrix),
);
