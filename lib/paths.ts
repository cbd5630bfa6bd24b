/** Where the API's routes lie: below these, every answer is JSON. A new root is added here and nowhere else. */
export const API_ROOTS = ['auth', 'users', 'webhooks'] as const;

const API = new RegExp(`^/(?:${API_ROOTS.join('|')})(?:/|$)`);

/** True if every answer at this path is JSON. */
export const isApi = (pathname: string): boolean => API.test(pathname);

/** Where a person's browser navigates to. */
const PAGE = /^\/(?:$|(?:sign-in|sign-up)(?:\/|$)|account\/?$)/;

/**
 * True if the path is a page, where the identity provider may redirect a browser to renew its session. A path that is
 * neither a page nor below an API root is shielded as one of the API, so a new one is shielded at once.
 */
export const isPage = (pathname: string): boolean => PAGE.test(pathname);
