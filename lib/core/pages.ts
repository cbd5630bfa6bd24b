import type { AuthenticatedContext, Link, TenantContext } from './link';
import type { Actor, Verdict } from './verdict';

/** What the framework knows of the current page, server action or route. */
export interface PagePorts {
  /** Returns the verdict on the current request. */
  verdict(): Promise<Verdict>;
  /** Redirects to the sign-in page. In a route, throws an HttpError 401. */
  signIn(): Promise<never>;
  /** Returns a function whose calls in one request share a result. */
  once<T>(work: () => Promise<T>): () => Promise<T>;
  /** Runs the lookup of the user, for example with a log line. */
  lookUp?<T>(work: () => Promise<T>): Promise<T>;
}

/** Creates the functions of pages. Call it once in a module, because `once` knows the results of its own functions alone. */
export function createPages(
  { resolveUser, resolveTenant, observer }: Link,
  { verdict, signIn, once, lookUp = (work) => work() }: PagePorts,
) {
  const currentVerdict = once(verdict);
  const getUser = once(async () => {
    const current = await currentVerdict();
    return lookUp(() => {
      if (current.provider !== undefined) observer.note({ provider: current.provider });
      return resolveUser(current);
    });
  });

  return {
    /**
     * Returns both ids of the user of the current page, server action or route. Returns undefined without a verified session,
     * and for a forgotten user. Links a new user. The components and layouts of a page share one result. Passes errors of the
     * store through. After such an error, a page shows its error boundary. A cache failure has no effect.
     */
    getUser,
    /**
     * Returns the same as `getUser`. Without a user, a page or a server action redirects to the sign-in page, which returns the
     * browser to this page. A route responds with a 401 in JSON.
     */
    requireUser: async (): Promise<AuthenticatedContext> => (await getUser()) ?? signIn(),
    /**
     * Returns the context of the user in the active organization of the session. Returns undefined without an active
     * organization, and where `getUser` does. Creates the tenant of a new organization. The components and layouts of a page
     * share one result.
     */
    getTenant: once(
      async (): Promise<TenantContext | undefined> =>
        (await resolveTenant(await currentVerdict(), getUser)).tenant,
    ),
    /**
     * Returns the actor of the current page, server action or route: a person who impersonates the user, or an agent
     * (`type: 'agent'`). Returns undefined if the user acts, and without a verified session.
     */
    getActor: async (): Promise<Actor | undefined> => (await currentVerdict()).actor,
  };
}
