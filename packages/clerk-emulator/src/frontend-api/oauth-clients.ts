import { lookup } from 'node:dns/promises';
import { BlockList } from 'node:net';
import { z } from 'zod';
import { type ApiRequest, type ApiResponse, isJson, isLoopback, parse } from '../http';
import { ApiError } from '../instance/api-error';
import type { OAuthClient, User } from '../instance/data';
import { newRow, randomText } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { userImage } from '../instance/resources';

/** The scopes of Clerk, each with the claims that a client gets about the user. */
export const SCOPES = new Map<string, (user: User) => object>([
  ['openid', () => ({})],
  [
    'profile',
    (user) => ({
      name: [user.firstName, user.lastName].filter(Boolean).join(' '),
      given_name: user.firstName,
      family_name: user.lastName,
      preferred_username: user.username,
      picture: userImage(user),
    }),
  ],
  ['email', ({ email }) => ({ email, email_verified: email !== null })],
  [
    'public_metadata',
    (user) => ({ public_metadata: user.publicMetadata, unsafe_metadata: user.unsafeMetadata }),
  ],
  ['private_metadata', (user) => ({ private_metadata: user.privateMetadata })],
  ['offline_access', () => ({})],
]);

/** An address of the client. Schemes other than http and https belong to native apps. */
const RedirectUri = z
  .url({ abort: true })
  .regex(/^[^#]*$/)
  .refine((uri) => {
    const { protocol } = new URL(uri);
    return protocol === 'http:'
      ? isLoopback(uri)
      : !/^(?:about|blob|data|file|javascript|vbscript):$/.test(protocol);
  }, 'http is only for this machine');

/** The fields of a registration that are used (RFC 7591, 2). Invalid optional fields are replaced. */
const Registration = z.object({
  redirect_uris: z.array(RedirectUri).min(1),
  client_name: z.string().min(1).max(256).optional().catch(undefined),
  token_endpoint_auth_method: z
    .enum(['client_secret_basic', 'client_secret_post', 'none'])
    .catch('client_secret_basic'),
  // At Clerk, a client may request only the scopes of its registration. These are the default ones.
  scope: z.string().catch('profile email'),
});

/** Registers a client (RFC 7591, 3). Throws a 400 if a redirect URI is invalid. */
export function register(instance: Instance, { body, headers }: ApiRequest): ApiResponse {
  if (!isJson(headers.get('content-type') ?? ''))
    throw new ApiError(400, 'invalid_client_metadata', 'The content type must be application/json.');
  const fields = parse(Registration, body);
  const secret = fields.token_endpoint_auth_method === 'none' ? null : randomText(32);
  const client = putClient(instance, randomText(16), fields, secret);
  return {
    status: 201,
    body: {
      ...fields,
      client_name: client.name,
      client_id: client.id,
      client_id_issued_at: Math.floor(client.createdAt / 1000),
      ...(secret !== null && { client_secret: secret }),
      client_secret_expires_at: 0,
      scope: client.scopes.join(' '),
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    },
  };
}

function putClient(
  instance: Instance,
  id: string,
  { client_name: name = id, redirect_uris: redirectUris, scope }: z.output<typeof Registration>,
  secret: string | null,
): OAuthClient {
  const scopes = scope.split(' ').filter((each) => SCOPES.has(each));
  return instance.store.oauthClients.put({
    ...newRow(instance, 'oa'),
    id,
    name,
    redirectUris,
    scopes,
    secret,
  });
}

const CACHE_MILLISECONDS = 5 * 60_000;
const TIMEOUT_MILLISECONDS = 5000;
const MAX_BYTES = 5 * 1024;

/** Addresses that only this machine or its network has. */
const PRIVATE = new BlockList();
const PRIVATE_IPV4 =
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.168.0.0/16 198.18.0.0/15 224.0.0.0/3';
const PRIVATE_IPV6 = '::/96 64:ff9b::/96 fc00::/7 fe80::/10 ff00::/8';
for (const subnet of `${PRIVATE_IPV4} ${PRIVATE_IPV6}`.split(' ')) {
  const [address = '', bits] = subnet.split('/');
  PRIVATE.addSubnet(address, Number(bits), subnet.includes(':') ? 'ipv6' : 'ipv4');
}

/**
 * Loads a client whose id is the address of its metadata document (draft-ietf-oauth-client-id-metadata-document), unless it was
 * loaded in the last five minutes. Throws a 400 if the address or the document is not valid.
 */
export async function loadClient(instance: Instance, id: string): Promise<void> {
  const { store, clock, oauth } = instance;
  const known = store.oauthClients.get(id);
  if (!URL.canParse(id) || (known && known.updatedAt + CACHE_MILLISECONDS > clock.now())) return;
  try {
    const url = new URL(id);
    const isLocal = oauth.loopbackClients && isLoopback(id);
    // `href` differs for an address with dot segments, a default port or an empty user name.
    const isPlain = url.href === id && !/[#@]/.test(id) && url.pathname !== '/';
    if (!isPlain || (url.protocol !== 'https:' && !isLocal)) throw new Error('its address is not allowed');
    const Document = Registration.extend({
      client_id: z.literal(id),
      client_secret: z.never().optional(),
      token_endpoint_auth_method: z.literal('none').default('none'),
    });
    putClient(instance, id, parse(Document, JSON.parse(await download(url, isLocal))), null);
  } catch (error) {
    const problem = error instanceof Error ? error.message : error;
    throw new ApiError(400, 'invalid_client', `The client metadata document is not valid: ${problem}`);
  }
}

/** Returns the text of a document. Follows no redirect. TLS prevents that another server takes the place of the checked one. */
async function download(url: URL, isLocal: boolean): Promise<string> {
  const addresses = await lookup(url.hostname.replace(/^\[|\]$/g, ''), { all: true });
  const isPrivate = ({ address, family }: { address: string; family: number }) =>
    PRIVATE.check(address, family === 6 ? 'ipv6' : 'ipv4');
  if (!isLocal && addresses.some(isPrivate)) throw new Error('its address is private');
  const signal = AbortSignal.timeout(TIMEOUT_MILLISECONDS);
  const response = await fetch(url, { headers: { accept: 'application/json' }, redirect: 'error', signal });
  if (response.status !== 200) throw new Error(`its status is ${response.status}`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    if (Buffer.concat(chunks).length > MAX_BYTES) throw new Error('it is longer than 5 KB');
  }
  return Buffer.concat(chunks).toString();
}
