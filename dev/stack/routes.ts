import { writeRoutes } from '../../lib/routing/app-routes';
import { messageOf } from '../system/errors';

const INTERVAL_MS = 1_000;

/**
 * Keeps lib/routing/routes.ts up to date while the development server runs. Compares routes.ts with the files in app/ every
 * second, because recursive file watchers are unreliable in some supported versions of Node.js. If consecutive comparisons
 * fail with the same message, prints the message once. Returns a function that stops the updates.
 */
export function updateRoutes(print: (message: string) => void = console.error): () => void {
  let printed: string | undefined;
  const timer = setInterval(() => {
    try {
      writeRoutes();
      printed = undefined;
    } catch (error) {
      const message = messageOf(error);
      if (message !== printed) print(message);
      printed = message;
    }
  }, INTERVAL_MS);
  return () => clearInterval(timer);
}
