import { z } from 'zod';
import { type ApiRequest, parse, type Routes } from '../http';
import { requireFound } from '../instance/error';
import type { Instance } from '../instance/instance';

const PayloadQuery = z.object({ nonce: z.string().min(1) });

/**
 * Returns the route that exchanges the nonce of a handshake for cookies. A handshake is a redirect that renews a session
 * (../frontend-api/handshake.ts). The application's server calls the route and sets the cookies in the browser.
 */
export function handshakeRoutes(instance: Instance): Routes<ApiRequest, unknown> {
  return {
    'GET /v1/clients/handshake_payload': ({ url }) => {
      const { nonce } = parse(PayloadQuery, Object.fromEntries(url.searchParams));
      return { directives: requireFound(instance.handshakes.take(nonce), 'The handshake') };
    },
  };
}
