/** Phrases that readers must read twice or that replace a standard term, each with the plain alternative. */
const RULES: readonly (readonly [pattern: RegExp, write: string])[] = [
  [
    /(?<=(?:^|[.!?:])\s*)(?:What|Who|Whoever|Whatever|Whose|How (?!to\b))\b[^.!?]*(?=[.!]|$)(?!\.\w)/g,
    'a sentence that starts with its subject',
  ],
  [/\b(?:nobody|somebody|anybody|everybody|whoever)\b/gi, 'client, caller, user or operator'],
  [/[,;:]\s+for\s+(?:it|they|then|there|he|she|we|this|these|that|nothing|none)\b/gi, 'because'],
  [/\b(?:of|by|with|to|on|over|behind|below|above|beyond)\s+wh(?:ich|om|ose)\b/gi, 'two sentences'],
  [
    /(?<!\bthere\s+)\b(?:is|are|was|were)\s+no\s+(?!longer\b|more\b|such\b|need\b|reason\b|way\b|other\b)\w+/gi,
    '"is not a ..." or "there is no ..."',
  ],
  [/\b(?:is|are|was|were|be)\s+told\b|\b(?:tells?|told)\s+of\b/gi, 'returns, reports or describes'],
  [/\b(?:comes?|came)\s+to\b|\bhangs?\s+on\b/gi, 'results in, reaches or depends on'],
  [/\bstands?\s+(?:in|for|behind|before|on|there)\b/gi, 'is, is in or replaces'],
  [/\banswer(?:s|ed|ing)?\b/gi, 'response, respond'],
  [/\bfaults?\b(?![- ](?:toleran|injecti))/gi, 'error, failure'],
  [/\brefus(?:e|es|ing|al|als)\b/gi, 'reject, rejection'],
  [/\btime-outs?\b/gi, 'timeout'],
  [/\blook-ups?\b/gi, 'lookup'],
  [/\banew\b/gi, 'again'],
  [/\bunder\s+way\b/gi, 'in flight, running'],
  [/\bstand-ins?\b/gi, 'emulator'],
  [/\b(?:gate|shield)(?:s|ed)?\b/gi, 'HTTP server, request filter or middleware'],
];

interface Block {
  readonly line: number;
  readonly text: string;
}

const lineBreaks = (text: string) => text.replace(/[^\n]/g, '');
const lineAt = (text: string, index: number) => lineBreaks(text.slice(0, index)).length + 1;
/** Replaces inline code by `X` and removes the targets of links. */
const withoutCode = (text: string) =>
  text.replace(/`[^`]*`/g, (code) => `X${lineBreaks(code)}`).replace(/\]\([^)\s]*\)|https?:\/\/\S+/g, ']');

/** Returns the paragraphs, list items and table cells of Markdown, without headings and code blocks. */
function markdownBlocks(text: string): Block[] {
  const prose = withoutCode(text.replace(/^ *```[\s\S]*?^ *```$|^#+ .*$|<!--[\s\S]*?-->/gm, lineBreaks));
  const block =
    /(?<=(?:^|\|)[ \t]*(?:(?:[-*>]|\d+\.) *)?)[^|\s>-](?:[^|\n]|\n(?![ \t]*(?:\n|[-*>|]|\d+\.)))*/gm;
  return [...prose.matchAll(block)].map(({ index, 0: found }) => ({
    line: lineAt(prose, index),
    text: found,
  }));
}

/** Returns the comments of a source file, and the titles of its tests. */
function commentBlocks(text: string): Block[] {
  const block =
    /(?<=^|\s)\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/ .*(?:\n\s*\/\/ .*)*|(?<=\b(?:test|describe)(?:\.\w+(?:\([^()]*\))?)*\(\s*)(?:'[^'\n]*'|"[^"\n]*")/gm;
  return [...text.matchAll(block)].map(({ index, 0: found }) => ({
    line: lineAt(text, index),
    text: withoutCode(found.replace(/^\s*(?:\/\*\*?|\/\/|\*(?!\/))|\*\/$|^['"]|['"]$/gm, '')),
  }));
}

/** Returns the phrases of a file that match a rule. */
export function findProse(file: string, text: string): { line: number; found: string; write: string }[] {
  const blocks = file.endsWith('.md') ? markdownBlocks(text) : commentBlocks(text);
  return blocks.flatMap((block) =>
    RULES.flatMap(([pattern, write]) =>
      [...block.text.matchAll(pattern)].map(({ index, 0: match }) => ({
        line: block.line + lineAt(block.text, index) - 1,
        found: match.replace(/\s+/g, ' ').slice(0, 60),
        write,
      })),
    ),
  );
}
