import { signatureHeaders } from '../../../tests/harness/requests';
import { isWebhook } from './addresses';
import { type LimitsFor, ordinaryLimits } from './growth';
import type { CostRequest } from './request';

/** A part of a request that a client can make larger. The ordinary request is the small request before the part grows. */
export interface Dimension {
  readonly name: string;
  /** Maximum size of the part that grows, in bytes. */
  readonly maxBytes: number;
  readonly appliesTo: (ordinary: CostRequest) => boolean;
  /** Returns the ordinary request with this part enlarged to the given size. */
  readonly grow: (ordinary: CostRequest, bytes: number) => CostRequest;
  /**
   * Control request. If there is one, the cost of the enlarged request is compared with the cost of the control request.
   * Otherwise, it is compared with the cost of the ordinary request. `control.grow` returns the control request, whose body is
   * as large as the body of the enlarged request. `control.limits` replaces the default limits.
   */
  readonly control?: { readonly grow: Dimension['grow']; readonly limits: LimitsFor };
}

/**
 * Maximum size of a growing part of the request line or of the headers, in bytes. Node.js accepts 16 KiB in total for the
 * request line and the headers. The remainder is for the session token and the other headers.
 */
const MAX_HEAD = 15_000;
/** Maximum size of a body, in bytes. The webhook and server actions accept up to 1 MiB. Other addresses have lower limits. */
const MAX_BODY = 1_048_576;
/** Maximum size of a body that is sent in chunks of one byte, in bytes. */
const MAX_CHUNKS = 100_000;

/** Repeats a unit as often as it fits into a number of bytes. */
export function fill(bytes: number, unit: (index: number) => string): string {
  const units: string[] = [];
  let free = bytes;
  for (let index = 0; ; index += 1) {
    const next = unit(index);
    free -= next.length;
    if (free < 0) return units.join('');
    units.push(next);
  }
}

/** Returns `open` repeated, followed by `close` repeated the same number of times. The result has at most `bytes` bytes. */
const nest = (bytes: number, open: string, close: string) => {
  const depth = Math.floor(bytes / (open.length + close.length));
  return `${open.repeat(depth)}${close.repeat(depth)}`;
};

const withHeader = (
  request: CostRequest,
  name: string,
  value: string,
  ...more: [string, string][]
): CostRequest => ({
  ...request,
  headers: [...request.headers.filter(([present]) => present !== name), [name, value], ...more],
});

const always = () => true;
const hasBody = ({ method }: CostRequest) => method === 'POST';

const head = (name: string, grow: Dimension['grow'], appliesTo = always): Dimension => ({
  name,
  maxBytes: MAX_HEAD,
  appliesTo,
  grow,
});

const query = (name: string, unit: (index: number) => string): Dimension =>
  head(`query: ${name}`, (request, bytes) => ({
    ...request,
    target: `${request.target}?${fill(bytes, unit)}`,
  }));

const path = (name: string, unit: string): Dimension =>
  head(`path: ${name}`, (request, bytes) => ({
    ...request,
    target: `${request.target.replace(/\/$/, '')}${fill(bytes, () => unit)}`,
  }));

const header = (title: string, name: string, value: (bytes: number) => string): Dimension =>
  head(title, (request, bytes) => withHeader(request, name, value(bytes)));

const cookies = (name: string, unit: (index: number) => string): Dimension =>
  header(`cookies: ${name}`, 'cookie', (bytes) => fill(bytes, unit));

const headers = (name: string, unit: (index: number) => string): Dimension =>
  head(`headers: ${name}`, (request, bytes) => {
    // A header takes its name, a colon, a space and a line break. The value is empty.
    const names = fill(bytes, (index) => `${unit(index)}: \r\n`)
      .split(': \r\n')
      .slice(0, -1);
    return {
      ...request,
      headers: [...request.headers, ...names.map((each): [string, string] => [each, ''])],
    };
  });

const body = (name: string, contentType: string, content: (bytes: number) => string): Dimension => ({
  name: `body: ${name}`,
  maxBytes: MAX_BODY,
  appliesTo: hasBody,
  grow: (request, bytes) => ({
    ...withHeader(request, 'content-type', contentType),
    body: content(bytes),
  }),
});

/** Id in the format of a server action (at least 40 hexadecimal digits). The service has no action with this id. */
const UNKNOWN_ACTION = '0123456789'.repeat(4);

const chunks = (name: string, ...more: [string, string][]): Dimension => ({
  name: `body: ${name}`,
  maxBytes: MAX_CHUNKS,
  appliesTo: hasBody,
  grow: (request, bytes) => ({
    ...withHeader(request, 'content-type', 'text/plain;charset=UTF-8', ...more),
    body: 'a'.repeat(bytes),
    oneByteChunks: true,
  }),
});

const BOUNDARY = 'b';
const part = (field: string) =>
  `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${field}"\r\n\r\n\r\n`;
const multipart = (name: string, field: (index: number) => string): Dimension =>
  body(
    name,
    `multipart/form-data; boundary=${BOUNDARY}`,
    (bytes) => `${fill(bytes, (index) => part(field(index)))}--${BOUNDARY}--\r\n`,
  );

const wideObject = (bytes: number) => `{${fill(bytes, (index) => `"k${index}":0,`).slice(0, -1)}}`;
const deepArray = (bytes: number) => nest(bytes, '[', ']');
const flatObject = (bytes: number) => `{"a":"${'a'.repeat(bytes)}"}`;

/** Returns a webhook delivery with a current timestamp and with invalid signatures of the right length. */
function forged(request: CostRequest, text: string, signatures: number): CostRequest {
  const { 'svix-id': id = '', 'svix-timestamp': timestamp = '' } = signatureHeaders('');
  const signature = Array.from({ length: signatures }, () => `v1,${'A'.repeat(43)}=`).join(' ');
  return {
    ...withHeader(request, 'svix-id', id, ['svix-timestamp', timestamp], ['svix-signature', signature]),
    body: text,
  };
}

const unsigned = (request: CostRequest, text: string): CostRequest => ({ ...request, body: text });
const signed = (request: CostRequest, text: string): CostRequest => ({
  ...request,
  headers: [...request.headers, ...Object.entries(signatureHeaders(text))],
  body: text,
});

/**
 * Limits for deliveries with invalid signatures. The control request has a body of the same size but no signature, so the
 * service does not hash its body. If a request has a signature, the service hashes the body once for each of its two signing
 * secrets (main.ts). One hash of 1 MiB takes about a millisecond. An additional cost below `negligible` (4 ms) is acceptable,
 * so both hashes are within the limits.
 */
const SIGNATURE_LIMITS: LimitsFor = () => ({ factor: 1.6, negligible: 4 });
/**
 * Limits for deliveries with valid signatures. The control request is a signed delivery with one JSON string of the same
 * length. Deep or wide JSON always costs more than a string, and only the identity provider can sign. Therefore, only
 * superlinear growth is a finding.
 */
const SIGNED_JSON_LIMITS: LimitsFor = (page) => ({ negligible: ordinaryLimits(page).negligible });

const SIGNATURES_BODY = flatObject(MAX_BODY - 100);
/** Length of one signature in the header, with the space after it. */
const SIGNATURE_BYTES = 48;

const webhook: readonly Dimension[] = [
  {
    name: 'webhook: body size, any svix-signature',
    maxBytes: MAX_BODY - 100,
    appliesTo: isWebhook,
    grow: (request, bytes) => forged(request, flatObject(bytes), 1),
    control: { grow: (request, bytes) => unsigned(request, flatObject(bytes)), limits: SIGNATURE_LIMITS },
  },
  {
    name: 'webhook: number of signatures, 1 MiB body',
    maxBytes: MAX_HEAD,
    appliesTo: isWebhook,
    grow: (request, bytes) => forged(request, SIGNATURES_BODY, Math.floor(bytes / SIGNATURE_BYTES)),
    control: { grow: (request) => unsigned(request, SIGNATURES_BODY), limits: SIGNATURE_LIMITS },
  },
  ...[
    { name: 'webhook: signed, JSON depth', content: deepArray },
    { name: 'webhook: signed, JSON width', content: wideObject },
  ].map(
    ({ name, content }): Dimension => ({
      name,
      maxBytes: MAX_BODY - 100,
      appliesTo: isWebhook,
      grow: (request, bytes) => signed(request, content(bytes)),
      control: { grow: (request, bytes) => signed(request, flatObject(bytes)), limits: SIGNED_JSON_LIMITS },
    }),
  ),
];

/** Names of query parameters of the SDK, without the prefix `__clerk_`. */
const CLERK_PARAMETERS = ['handshake', 'handshake_nonce', 'db_jwt', 'status', 'created_session', 'help'];

/** Sends a value in the header `next-router-state-tree`, the state of the client-side router of Next.js. */
const routerState = (name: string, value: (bytes: number) => string) =>
  head(`router state: ${name}`, (request, bytes) =>
    withHeader(request, 'next-router-state-tree', value(bytes), ['rsc', '1']),
  );

/** Headers whose values are lists. The service, Next.js or Node.js parses these lists. */
const LISTS: readonly (readonly [name: string, unit: string])[] = [
  ['accept', 'a/a,'],
  ['accept-encoding', 'a,'],
  ['accept-language', 'a,'],
  ['if-none-match', '"a",'],
  ['range', '0-0,'],
  ['x-forwarded-for', 'a,'],
];

/** All dimensions. `appliesTo` selects the requests that a dimension can enlarge. */
export const DIMENSIONS: readonly Dimension[] = [
  query('one name repeated', () => 'a&'),
  query('different names', (index) => `k${index}&`),
  query('percent-encoded value', (index) => (index === 0 ? 'a=' : '%41')),
  query('different __clerk_ names', (index) => `__clerk_${index}&`),
  query(
    'names of the SDK repeated',
    (index) => `__clerk_${CLERK_PARAMETERS[index % CLERK_PARAMETERS.length]}=a.b.c&`,
  ),
  cookies('different names', (index) => `c${index}=; `),
  cookies('one name repeated', () => 'c=; '),
  cookies('sessions of different instances', (index) => `__session_${index}=a.b.c; `),
  headers('different names', (index) => `x${index}`),
  headers('one name repeated', () => 'x'),
  head('headers: lists', (request, bytes) => ({
    ...request,
    headers: [
      ...request.headers,
      ...LISTS.map(([name, unit]): [string, string] => [
        name,
        `${name === 'range' ? 'bytes=' : ''}${fill(bytes / LISTS.length, () => unit).slice(0, -1)}`,
      ]),
    ],
  })),
  path('segments', '/a'),
  path('percent-encoded', '/%C3%A9'),
  header('authorization: long bearer', 'authorization', (bytes) => `Bearer ${'a'.repeat(bytes)}`),
  header(
    'authorization: bearer of many parts',
    'authorization',
    (bytes) => `Bearer ${fill(bytes, () => 'a.')}`,
  ),
  routerState('depth', (bytes) => nest(bytes, '["",{"children":', '}]')),
  routerState('width', (bytes) => `["",${wideObject(bytes)}]`),
  body('size', 'text/plain;charset=UTF-8', (bytes) => 'a'.repeat(bytes)),
  chunks('one-byte chunks'),
  chunks('one-byte chunks with next-action', ['next-action', UNKNOWN_ACTION]),
  body('JSON depth', 'application/json', deepArray),
  body('JSON width', 'application/json', wideObject),
  multipart('multipart fields', (index) => `k${index}`),
  multipart('multipart fields of an action', (index) => `$ACTION_REF_${index}`),
  body('urlencoded fields', 'application/x-www-form-urlencoded', (bytes) =>
    fill(bytes, (index) => `k${index}=&`),
  ),
  ...webhook,
];

/**
 * Returns the sizes at which a dimension is measured, in ascending order. Each size is `step` times the previous size.
 */
export const sizesOf = ({ maxBytes }: Dimension, step: number, count: number): number[] =>
  Array.from({ length: count }, (_, index) => Math.floor(maxBytes / step ** (count - 1 - index)));
