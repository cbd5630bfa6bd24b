/** Describes to the user where the service found the link between the identity provider's id and the internal id. */
export interface Provenance {
  readonly title: string;
  readonly text: string;
}

/** Returns the description of an entry of the `server-timing` header, such as `hit` for `cache;desc="hit"`. */
const entry = (headers: Headers, name: string) =>
  new RegExp(`(?:^|,)\\s*${name}\\s*;\\s*desc="?(\\w+)`).exec(headers.get('server-timing') ?? '')?.[1];

/** Returns true for the response to the request that created the caller's link. */
export function createdCallerLink(headers: Headers): boolean {
  return entry(headers, 'caller') === 'created';
}

/** Returns where the service found the link, according to the `server-timing` header of the response. */
export function provenance(headers: Headers): Provenance {
  if (createdCallerLink(headers)) {
    return {
      title: 'Registered by this request',
      text: 'The link did not exist before this request. A later webhook for this user finds the same link.',
    };
  }
  switch (entry(headers, 'cache')) {
    case 'hit':
      return { title: 'Read from the cache', text: 'The service did not query the database.' };
    case 'miss':
      return {
        title: 'Found in the database',
        text: 'The webhook or an earlier request created the link. The link was not in the cache.',
      };
    case 'bypass':
      return {
        title: 'Found in the database',
        text: 'The cache did not respond, so the service queried the database.',
      };
    default:
      return {
        title: 'Returned by the service',
        text: 'The response does not say where the link was found.',
      };
  }
}
