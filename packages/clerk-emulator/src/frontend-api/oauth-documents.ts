import { lookup as resolve } from 'node:dns';
import { get, type IncomingMessage } from 'node:http';
import { get as getWithTls } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { isJson } from '../http';

const MAX_BYTES = 5 * 1024;

/** The IPv6 addresses that the registries give to networks. All others have a special purpose, or none yet. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3');

/** Returns true for an address outside the special-purpose registries of IANA, also of those that contain an IPv4 address. */
export function isPublicAddress(text: string): boolean {
  const address = ipaddr.parse(text);
  return address.range() === 'unicast' && (address.kind() === 'ipv4' || address.match(GLOBAL_IPV6));
}

interface DownloadOptions {
  /** Returns false for an address that must not be connected to. */
  readonly isAllowed: (address: string) => boolean;
  /** Ends the lookup of the name and the download. */
  readonly signal: AbortSignal;
  readonly lookup?: LookupFunction;
}

/**
 * Downloads a JSON document of at most 5 KB. Resolves the name once, checks all its addresses and connects to one of them, so that
 * the name cannot lead to another address afterwards. Follows no redirect, and uses no proxy, which would resolve the name itself.
 */
export async function downloadJson(url: URL, options: DownloadOptions): Promise<unknown> {
  const { isAllowed, signal, lookup = resolve } = options;
  const problem = new Error('its address is private');
  const checkedLookup: LookupFunction = (hostname, lookupOptions, callback) =>
    lookup(hostname, { ...lookupOptions, all: true }, (error, found) => {
      const isChecked = Array.isArray(found) && found.every(({ address }) => isAllowed(address));
      callback(error ?? (isChecked ? null : problem), found);
    });
  // Node.js does not look up a host that is an address.
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) && !isAllowed(host)) throw problem;
  const request = url.protocol === 'https:' ? getWithTls : get;
  const headers = { accept: 'application/json' };
  const connection = { agent: false, autoSelectFamily: true, lookup: checkedLookup, signal } as const;
  const response = await new Promise<IncomingMessage>((done, fail) => {
    request(url, { ...connection, headers }, done).on('error', fail);
  });
  try {
    if (response.statusCode !== 200) throw new Error(`its status is ${response.statusCode}`);
    if (!isJson(response.headers['content-type'] ?? '')) throw new Error('its content type is not JSON');
    let bytes = Buffer.alloc(0);
    for await (const chunk of response) {
      bytes = Buffer.concat([bytes, chunk]);
      if (bytes.length > MAX_BYTES) throw new Error('it is longer than 5 KB');
    }
    return JSON.parse(bytes.toString());
  } finally {
    response.destroy();
  }
}
