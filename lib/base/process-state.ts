/**
 * Returns the value that all bundles of the process share under this name. The first call creates the value.
 *
 * Next.js bundles the middleware, the routes and the instrumentation separately, and server.ts is a bundle of its own. Each
 * bundle has its own copy of a module, so a module-level variable cannot carry state from one bundle to another.
 */
export function processState<T extends object>(name: string, create: () => T): T {
  const key = Symbol.for(`identity-link.${name}`);
  const existing = Reflect.get(globalThis, key);
  if (existing) return existing;
  const created = create();
  Reflect.set(globalThis, key, created);
  return created;
}
