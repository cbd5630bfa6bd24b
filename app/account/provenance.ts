export interface Provenance {
  readonly title: string;
  readonly text: string;
}

const entry = (serverTiming: string, name: string) =>
  new RegExp(`(?:^|,)\\s*${name}\\s*;\\s*desc="?(\\w+)`).exec(serverTiming)?.[1];

/** How an answer came about, read from its `server-timing` header. */
export function provenance(headers: Headers): Provenance {
  const serverTiming = headers.get('server-timing') ?? '';
  if (entry(serverTiming, 'caller') === 'created') {
    return {
      title: 'Registered by this request',
      text: 'It came before the webhook, which will find the link made and change nothing.',
    };
  }
  switch (entry(serverTiming, 'cache')) {
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
