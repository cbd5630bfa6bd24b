import { existsSync } from 'node:fs';
import tls from 'node:tls';
import { fieldsOf } from '../core/values';

/** The parsed value, or a description of the problem. The description does not contain the input. */
export type ParseResult<T> = { readonly value: T } | { readonly problem: string };

/** Matches the parameter with which libpq verifies the server by the certificates of the system. */
const SYSTEM_CERTIFICATES = /[?&]sslrootcert=system(?=&|$)/;

/**
 * Returns the options of `pg` for a connection string. `pg` does not know `sslrootcert=system`. Before 22.15, Node.js cannot read
 * the certificates of the system. It then uses its own certificates and those in NODE_EXTRA_CA_CERTS.
 */
export function databaseOptions(connectionString: string): {
  readonly connectionString: string;
  readonly ssl?: { readonly ca: string[] | undefined };
} {
  if (!SYSTEM_CERTIFICATES.test(connectionString)) return { connectionString };
  const { getCACertificates } = fieldsOf(tls);
  const ca = typeof getCACertificates === 'function' ? getCACertificates('system') : undefined;
  return {
    connectionString: connectionString.replaceAll(/(?<=[?&])ssl(?:mode|rootcert)=[^&]*&?/g, ''),
    ssl: { ca },
  };
}

/** Checks a connection string. A Unix socket has no host in the URL, but a parameter `host`. */
export function readDatabaseUrl(value: string): ParseResult<string> {
  const parsable = value.replace('@/', '@localhost/');
  if (!/^postgres(?:ql)?:/.test(value) || !URL.canParse(parsable))
    return { problem: 'must be a postgresql:// URL' };
  const { hostname, searchParams } = new URL(parsable);
  const hasHostname = parsable === value && hostname !== '';
  if (!hasHostname && !searchParams.has('host'))
    return { problem: 'must be a postgresql:// URL with a host' };
  if ((searchParams.get('schema') ?? 'public') !== 'public')
    return { problem: 'must not name a schema, because the tables of the service are in the schema public' };
  const usesSystem = SYSTEM_CERTIFICATES.test(value);
  for (const name of usesSystem ? ['sslcert', 'sslkey'] : ['sslrootcert', 'sslcert', 'sslkey']) {
    const file = searchParams.get(name);
    if (!file) continue;
    if (usesSystem) return { problem: `must not have the parameter ${name} with sslrootcert=system` };
    // Without the comment in the call, a build would add all files of the project to .next/standalone.
    if (!existsSync(/* turbopackIgnore: true */ file))
      return { problem: `must name a file that exists in its parameter ${name}` };
  }
  return { value };
}
