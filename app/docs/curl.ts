import { type Operation, securitySchemes } from './document';

/** The variables that the commands read; the page tells how to set them. */
export const TOKEN = 'TOKEN';
export const SECRET = 'WEBHOOK_SECRET';

/** A text as one word of a shell. */
const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** Signs as the sender does (Standard Webhooks): HMAC-SHA256 by the decoded secret over id, timestamp and the exact bytes. */
const signing = (body: string) => `BODY=${quoted(body)}
ID=msg_$(openssl rand -hex 12) NOW=$(date +%s)
KEY=$(printf %s "\${${SECRET}#whsec_}" | openssl base64 -d -A |
  od -An -v -tx1 | tr -d ' \\n')
SIGNATURE=$(printf %s "$ID.$NOW.$BODY" |
  openssl dgst -sha256 -mac HMAC -macopt "hexkey:$KEY" -binary |
  openssl base64 -A)
`;
const SIGNED = [
  '-H "webhook-id: $ID"',
  '-H "webhook-timestamp: $NOW"',
  '-H "webhook-signature: v1,$SIGNATURE"',
  '--data-raw "$BODY"',
];

/** A command for a POSIX shell that calls an operation with the document's first example and prints the answer. */
export function curl(origin: string, { path, security, requestBody }: Operation): string {
  const schemes = security.flatMap((each) => Object.keys(each)).map((name) => securitySchemes[name]);
  const [example] = Object.values(requestBody?.content['application/json'].examples ?? {});
  const body = JSON.stringify(example?.value);
  const isSigned = schemes.some((scheme) => scheme?.in === 'header');
  const words = [
    `curl -i ${origin}${path}`,
    ...(schemes.some((scheme) => scheme?.scheme === 'bearer')
      ? [`-H "authorization: Bearer $${TOKEN}"`]
      : []),
    ...(isSigned ? SIGNED : body ? [`--data-raw ${quoted(body)}`] : []),
  ];
  return (isSigned ? signing(body) : '') + words.join(' \\\n  ');
}
