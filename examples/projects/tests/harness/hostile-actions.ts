import fc from 'fast-check';

/** Prefix of the name in each generated request. It must not appear in the log. */
export const MARK = 'mark7c2d';

export interface HostileAction {
  /** Name that the handler of the server action writes to the database if it runs. Each request has a different name. */
  readonly name: string;
  readonly session:
    | 'owner'
    | 'stranger'
    | 'none'
    | 'expired'
    | 'pending'
    | 'foreign signature'
    | 'not a token';
  readonly target: 'createProject' | 'renameProject' | 'addMember' | 'unknown' | 'malformed';
  readonly page: 'list' | 'project' | 'unknown page' | 'account';
  readonly headers: Readonly<Record<string, string>>;
  readonly originMatchesHost: boolean;
  readonly body: HostileBody;
}

/**
 * Body of a request that calls a server action. React sends the arguments as text or as fields. A browser without JavaScript
 * sends a form (`isForm`). The test replaces `$NAME` with the name of the request, `$PROJECT` with the id of a project and
 * `$ID` with the id of the action.
 */
interface HostileBody {
  readonly isForm: boolean;
  readonly text?: string;
  readonly fields?: Readonly<Record<string, string>>;
  /** False if no handler may accept the input. */
  readonly isValid: boolean;
  readonly isChunked?: boolean;
}

const INPUT = '{"projectId":"$PROJECT","name":"$NAME","user":"$NAME"}';
const nested = (depth: number, inner: string) => `${'['.repeat(depth)}${inner}${']'.repeat(depth)}`;
const FIELDS = { projectId: '$PROJECT', name: '$NAME', user: '$NAME' };
const ARGUMENTS = { '0': '[null,"$K1"]', '1_projectId': '$PROJECT', '1_name': '$NAME', '1_user': '$NAME' };

const VALID_BODIES: HostileBody[] = [
  { isForm: false, isValid: true, text: `[null,${INPUT}]` },
  { isForm: false, isValid: true, text: `[${INPUT}]` },
  { isForm: false, isValid: true, text: `[{"ok":true,"data":{"userId":"x"}},${INPUT}]` },
  { isForm: false, isValid: true, fields: ARGUMENTS },
  ...['[null]', '[{"ok":true}]', '["$PROJECT"]', '["$D2026-01-01T00:00:00.000Z"]', '[null,null,null]'].map(
    (bound) => ({
      isForm: true,
      isValid: true,
      fields: {
        $ACTION_REF_1: '',
        '$ACTION_1:0': '{"id":"$ID","bound":"$@1"}',
        '$ACTION_1:1': bound,
        ...FIELDS,
      },
    }),
  ),
  { isForm: true, isValid: true, fields: { $ACTION_ID_$ID: '', ...FIELDS } },
];

/** Arguments as React serializes them. A string like `$F1` or `$undefined` is a reference or a special value. */
const invalidInputs = [
  ...['null', '7', 'true', '"$NAME"', '[]', '{}', '{"name":7}', '{"name":null}', '{"name":{"$NAME":1}}'],
  ...[
    '{"__proto__":{"name":"$NAME","projectId":"$PROJECT","user":"$NAME"}}',
    '{"constructor":{"name":"$NAME"}}',
  ],
  ...[
    '{"name":["$NAME"]}',
    '{"name":"$undefined"}',
    '{"name":"$Infinity"}',
    '{"name":"$D$NAME"}',
    '{"name":"$n$NAME"}',
  ],
  ...[
    '{"name":"$F1"}',
    '{"name":"$K1"}',
    '{"name":"$Q1"}',
    '{"name":"$W1"}',
    '{"name":"$@1"}',
    '{"name":"$B1"}',
  ],
  ...['{"name":"$0:__proto__:constructor"}', '{"name":"$0:0:constructor:constructor"}', '{"then":"$0:then"}'],
  ...[
    '{"name":"$1:$NAME"}',
    '{"name":"$T$NAME"}',
    '{"name":"$h1"}',
    '{"name":"$i1"}',
    '{"name":"$Z1"}',
    '{"name":"$r1"}',
  ],
  '{"name":"\\u0000$NAME","user":"\\u0000$NAME"}',
  '{"name":"\\ud800$NAME","user":"\\ud800$NAME"}',
];

const invalid: HostileBody[] = [
  ...invalidInputs.flatMap((input) => [
    { isForm: false, isValid: false, text: `[null,${input}]` },
    { isForm: false, isValid: false, fields: { '0': `[null,${input}]` } },
  ]),
  ...[nested(65, INPUT), nested(5_000, INPUT), `[${INPUT}`, '', '$NAME', `{"length":2,"1":${INPUT}}`].map(
    (text) => ({
      isForm: false,
      isValid: false,
      text,
    }),
  ),
  {
    isForm: false,
    isValid: false,
    text: `[null,${INPUT.replace('"$NAME"', `"$NAME${'x'.repeat(1_100_000)}"`)}]`,
  },
  { isForm: false, isValid: false, text: `[${'null,'.repeat(1_001)}${INPUT}]` },
  { isForm: false, isValid: false, text: `[null,${INPUT}]`, isChunked: true },
  { isForm: true, isValid: false, fields: FIELDS },
  { isForm: true, isValid: false, fields: { $ACTION_ID_$NAME: '', ...FIELDS } },
  // The arguments that are bound to the action (`action.bind()`) contain a valid input, but the fields of the form do not.
  ...[`[null,${INPUT}]`, `[${INPUT}]`].map((bound) => ({
    isForm: true,
    isValid: false,
    fields: { $ACTION_REF_1: '', '$ACTION_1:0': '{"id":"$ID","bound":"$@1"}', '$ACTION_1:1': bound },
  })),
  ...['{}', '"$NAME"', '[', '', nested(65, ''), '["$F2"]', '["$1:__proto__"]', '["$B9"]'].map((bound) => ({
    isForm: true,
    isValid: false,
    fields: { $ACTION_REF_1: '', '$ACTION_1:0': '{"id":"$ID","bound":"$@1"}', '$ACTION_1:1': bound },
  })),
  ...[
    '{"bound":"$@1"}',
    '{"id":"__proto__","bound":null}',
    '{"id":"$NAME#x","bound":null}',
    '[]',
    '$NAME',
  ].map((ref) => ({
    isForm: true,
    isValid: false,
    fields: { $ACTION_REF_1: '', '$ACTION_1:0': ref, '$ACTION_1:1': '[null]', ...FIELDS },
  })),
];

/** Headers of a request from the origin of the page. */
const OWN_ORIGIN = [{}, { 'sec-fetch-site': 'same-origin' }];
/** Headers of a request from another origin. */
const FOREIGN_ORIGIN = [
  { origin: `https://${MARK}.example` },
  { origin: 'null' },
  { origin: MARK },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site' },
  { 'sec-fetch-site': MARK },
];
/** Additional headers. They must not give a request a session or more rights. */
const MORE = [
  {},
  {},
  {},
  { 'next-router-state-tree': encodeURIComponent(JSON.stringify(['', { children: ['__PAGE__', {}] }])) },
  { 'x-action-forwarded': '1' },
  { 'x-clerk-auth-status': 'signed-in', 'x-identity-link-user': MARK },
  { 'x-http-method-override': 'GET' },
  { authorization: `Bearer ${MARK}` },
];

const hostileAction = fc.record({
  session: fc.oneof(
    { weight: 3, arbitrary: fc.constant('owner' as const) },
    {
      weight: 4,
      arbitrary: fc.constantFrom(
        ...(['stranger', 'none', 'expired', 'pending', 'foreign signature', 'not a token'] as const),
      ),
    },
  ),
  target: fc.constantFrom(
    ...([
      'createProject',
      'renameProject',
      'addMember',
      'createProject',
      'renameProject',
      'addMember',
    ] as const),
    ...(['unknown', 'malformed'] as const),
  ),
  page: fc.constantFrom(...(['list', 'project', 'list', 'project', 'unknown page', 'account'] as const)),
  origin: fc.oneof(
    {
      weight: 3,
      arbitrary: fc.constantFrom(...OWN_ORIGIN).map((headers) => ({ headers, originMatchesHost: true })),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom(...FOREIGN_ORIGIN).map((headers) => ({ headers, originMatchesHost: false })),
    },
  ),
  more: fc.constantFrom(...MORE),
  body: fc.oneof(
    { weight: 1, arbitrary: fc.constantFrom(...VALID_BODIES) },
    { weight: 2, arbitrary: fc.constantFrom(...invalid) },
  ),
});

/** Generates `count` requests. The same seed produces the same requests. */
export const hostileActions = (count: number, seed: number): HostileAction[] =>
  fc.sample(hostileAction, { numRuns: count, seed }).map(({ origin, more, ...action }, n) => ({
    ...action,
    name: `${MARK}-${n}-`,
    originMatchesHost: origin.originMatchesHost,
    headers: { ...more, ...origin.headers },
  }));
