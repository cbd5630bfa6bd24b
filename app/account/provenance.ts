/** One way by which an answer came about, in words for its reader. */
export interface Provenance {
  readonly title: string;
  readonly text: string;
}

const entry = (headers: Headers, name: string) =>
  new RegExp(`(?:^|,)\\s*${name}\\s*;\\s*desc="?(\\w+)`).exec(headers.get('server-timing') ?? '')?.[1];

/** True for the one answer to the request that linked its caller. */
export function isFirstSight(headers: Headers): boolean {
  return entry(headers, 'caller') === 'created';
}

/** How an answer came about, read from its `server-timing` header. */
export function provenance(headers: Headers): Provenance {
  if (isFirstSight(headers)) {
    return {
      title: 'Registered by this request',
      text: 'It came before the webhook, which will find the link made and change nothing.',
    };
  }
  switch (entry(headers, 'cache')) {
    case 'hit':
      return { title: 'Read from the cache', text: 'The link was known, and the database was not asked.' };
    case 'miss':
      return {
        title: 'Found in the database',
        text: 'The webhook or an earlier request had made the link. From now on it is in the cache.',
      };
    case 'bypass':
      return {
        title: 'Found in the database',
        text: 'The cache did not answer, so the service went without it.',
      };
    default:
      return { title: 'Answered by the service', text: 'It did not say by which way it found the link.' };
  }
}
