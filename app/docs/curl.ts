import { type Operation, securitySchemes } from './document';

const quote = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/**
 * Returns shell commands that compute the signature of a webhook with this body (Standard Webhooks). The signature is the
 * HMAC-SHA256 of the message id, the timestamp and the body, joined by dots. The key of the HMAC is the decoded signing secret.
 */
const sign = (body: string) => `BODY=${quote(body)}
ID=msg_$(openssl rand -hex 12) NOW=$(date +%s)
KEY=$(printf %s "\${WEBHOOK_SECRET#whsec_}" | openssl base64 -d -A |
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

/**
 * Returns a command for a POSIX shell that calls an operation with the first example of its request body. The command reads the
 * address and the credentials from the shell variables API, TOKEN and WEBHOOK_SECRET, so the API page (/docs) shows the same
 * command on every host.
 */
export function curl({ path, security, requestBody }: Operation): string {
  const schemes = security.flatMap((each) => Object.keys(each)).map((name) => securitySchemes[name]);
  const [example] = Object.values(requestBody?.content['application/json'].examples ?? {});
  const body = JSON.stringify(example?.value);
  const isSigned = schemes.some((scheme) => scheme?.in === 'header');
  const isBearer = schemes.some((scheme) => scheme?.scheme === 'bearer');
  const data = body ? [`--data-raw ${quote(body)}`] : [];
  const words = [
    `curl -i "$API${path}"`,
    ...(isBearer ? ['-H "authorization: Bearer $TOKEN"'] : []),
    ...(isSigned ? SIGNED : data),
  ];
  return (isSigned ? sign(body) : '') + words.join(' \\\n  ');
}
