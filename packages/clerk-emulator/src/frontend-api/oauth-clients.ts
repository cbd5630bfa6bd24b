import { z } from 'zod';
import { messageOf } from '../errors';
import { type ApiRequest, type ApiResponse, isJson, isLoopback, parse } from '../http';
import { ApiError } from '../instance/api-error';
import type { OAuthClient } from '../instance/data';
import { newRow, randomText } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { SCOPES } from '../instance/settings';
import { downloadJson, isPublicAddress } from './oauth-documents';

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

/** The fields of a registration that are used (RFC 7591, 2), so not `client_uri` and `logo_uri`. Invalid optional ones are replaced. */
const Registration = z.object({
  redirect_uris: z.array(RedirectUri).min(1),
  client_name: z.string().min(1).max(256).optional().catch(undefined),
  token_endpoint_auth_method: z
    .enum(['client_secret_basic', 'client_secret_post', 'none'])
    .catch('client_secret_basic'),
  // At Clerk, a client may request only the scopes of its registration, or the default ones of the instance.
  scope: z.string().optional().catch(undefined),
});

/** Registers a client (RFC 7591, 3). Throws a 400 if a redirect URI is invalid. */
export function register(instance: Instance, { body, headers }: ApiRequest): ApiResponse {
  if (!isJson(headers.get('content-type') ?? ''))
    throw new ApiError(400, 'invalid_client_metadata', 'The content type must be application/json.');
  const fields = parse(Registration, body);
  const secret = fields.token_endpoint_auth_method === 'none' ? null : randomText(32);
  const given = fields.scope?.split(' ').filter((each) => SCOPES.some((scope) => scope === each));
  const scopes = given ?? [...instance.settings.oauthDefaultScopes];
  const client = putClient(instance, randomText(16), fields, { scopes, secret });
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
  { client_name: name = id, redirect_uris: redirectUris }: z.output<typeof Registration>,
  { scopes, secret }: Pick<OAuthClient, 'scopes' | 'secret'>,
): OAuthClient {
  const row = { ...newRow(instance, 'oa'), id, name, redirectUris, scopes, secret };
  return instance.store.oauthClients.put(row);
}

const CACHE_MILLISECONDS = 5 * 60_000;
const TIMEOUT_MILLISECONDS = 5000;

/**
 * Loads a client whose id is the address of its metadata document (draft-ietf-oauth-client-id-metadata-document), unless it was
 * loaded in the last five minutes. The scopes of its document do not count. Throws a 400 if the instance supports no metadata
 * documents, or if the address or the document is not valid.
 */
export async function loadClient(instance: Instance, id: string): Promise<void> {
  const { store, clock, oauth, settings } = instance;
  const known = store.oauthClients.get(id);
  if (!URL.canParse(id) || (known && known.updatedAt + CACHE_MILLISECONDS > clock.now())) return;
  const signal = AbortSignal.timeout(TIMEOUT_MILLISECONDS);
  try {
    if (!settings.clientMetadataDocuments) throw new Error('the setting clientMetadataDocuments is off');
    const url = new URL(id);
    const isLocal = oauth.loopbackClients && isLoopback(id);
    // `href` differs for an address with dot segments, a default port or an empty user name.
    const isPlain = url.href === id && !/[#@]/.test(id) && url.pathname !== '/';
    if (!isPlain || (url.protocol !== 'https:' && !isLocal)) throw new Error('its address is not allowed');
    const Document = Registration.extend({
      client_id: z.literal(id),
      client_name: z.string().min(1).max(256),
      client_secret: z.never().optional(),
      token_endpoint_auth_method: z.literal('none').default('none'),
    });
    const isAllowed = (address: string) => isLocal || isPublicAddress(address);
    const fields = parse(Document, await downloadJson(url, { isAllowed, signal }));
    const scopes = new Set([...settings.oauthDefaultScopes, 'offline_access']);
    putClient(instance, id, fields, { scopes: [...scopes], secret: null });
  } catch (error) {
    const problem = signal.aborted ? 'it took more than 5 seconds' : messageOf(error);
    throw new ApiError(400, 'invalid_client', `The client metadata document is not valid: ${problem}.`);
  }
}
