import { activeSessions, endSession } from '../accounts';
import type { Routes } from '../http';
import type { Instance } from '../instance';
import { type BrowserRequest, requireOwnSession } from './browser';
import { browserSessionResource, clientResource } from './resources';

type Resource = Record<string, unknown> | null;

/** The browser's client and its sessions: staying signed in, and signing out of one or all. */
export function sessionRoutes(instance: Instance): Routes<BrowserRequest, Resource> {
  const { clients, sessions } = instance.store;
  const end = (status: 'ended' | 'removed') => (request: BrowserRequest) => {
    const session = requireOwnSession(instance, request, request.id);
    return browserSessionResource(instance, endSession(instance, session, status), request.browser);
  };
  const endAll = ({ browser }: BrowserRequest) => {
    for (const session of browser.client ? activeSessions(instance, browser.client.id) : []) {
      endSession(instance, session, 'removed');
    }
  };
  return {
    'GET /v1/client': ({ browser }) => clientResource(instance, browser),
    'PUT /v1/client': ({ browser }) => {
      browser.establish();
      return clientResource(instance, browser);
    },
    'DELETE /v1/client': (request) => {
      endAll(request);
      const { client } = request.browser;
      if (client) clients.put({ ...client, signInId: null, signUpId: null });
      return null;
    },
    'DELETE /v1/client/sessions': (request) => {
      endAll(request);
      return clientResource(instance, request.browser);
    },
    'GET /v1/client/sessions/:id': (request) =>
      browserSessionResource(instance, requireOwnSession(instance, request, request.id), request.browser),
    'POST /v1/client/sessions/:id/touch': (request) => {
      const session = requireOwnSession(instance, request, request.id);
      const touched = sessions.put({ ...session, lastActiveAt: instance.clock.now() });
      return browserSessionResource(instance, touched, request.browser);
    },
    'POST /v1/client/sessions/:id/end': end('ended'),
    'POST /v1/client/sessions/:id/remove': end('removed'),
  };
}
