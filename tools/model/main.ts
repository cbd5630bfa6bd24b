import { LARGE, SMALL } from './bounds';
import { type Exploration, explore } from './explore';
import { linkModel } from './link';
import { WEAKNESSES } from './state';

// `npm run model`: explores every interleaving of the model in link.ts within the bounds of bounds.ts. Exits with 1 if the
// model breaks a guarantee. Then explores the model with each deliberate error (WEAKNESSES in state.ts), to show that the
// exploration finds errors. Also exits with 1 if the model with an error breaks no guarantee.

const numbered = ({ broken }: Exploration) =>
  (broken?.trace ?? []).map((step, index) => `  ${index + 1}. ${step}\n`).join('');
let surprises = 0;

for (const bounds of LARGE) {
  const used = Object.entries(bounds).filter(([, bound]) => bound > 0);
  console.log(`The model with ${used.map(([name, bound]) => `${name}: ${bound}`).join(', ')}`);
  const exploration = explore(linkModel(bounds));
  const { states, seconds, broken } = exploration;
  if (broken) surprises += 1;
  console.log(`  ${states} states, ${seconds.toFixed(1)} s`);
  console.log(broken ? `BROKEN: ${broken.guarantee}\n${numbered(exploration)}` : '  every guarantee holds\n');
}

for (const weakness of WEAKNESSES) {
  const explorations = SMALL.map((bounds) => explore(linkModel(bounds, weakness)));
  const found = explorations.find(({ broken }) => broken);
  if (!found) surprises += 1;
  console.log(`Weakened: ${weakness}`);
  console.log(
    found
      ? `  ${found.states} states, broken: ${found.broken?.guarantee}\n${numbered(found)}`
      : 'NOT FOUND\n',
  );
}
process.exitCode = surprises === 0 ? 0 : 1;
