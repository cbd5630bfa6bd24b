import { z } from 'zod';
import { isSelected, pageOf, parse, type Routes } from '../http';
import {
  activeSession,
  createSession,
  endSession,
  issueToken,
  requireSession,
  requireUser,
} from '../instance/accounts';
import { notFound } from '../instance/error';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { sessionResource } from '../instance/resources';

const CreateSession = z.strictObject({
  user_id: z.string(),
  active_organization_id: z.string().nullish(),
});
/** The maximum lifetime of a token is ten years. */
const TokenRequest = z.object({ expires_in_seconds: z.number().int().min(1).max(315_360_000).optional() });

/**
 * Returns the Backend API routes for sessions and their tokens. A session that `POST /v1/sessions` creates has a new client id
 * (Clerk's id of a browser), but no browser has this client id.
 */
export function sessionRoutes(instance: Instance): Routes {
  const { store } = instance;
  return {
    'POST /v1/sessions': ({ body }) => {
      const { user_id, active_organization_id: organizationId } = parse(CreateSession, body);
      const user = requireUser(instance, user_id);
      return { body: sessionResource(createSession(instance, user, newId('client'), organizationId)) };
    },
    'GET /v1/sessions': ({ url }) => {
      const sessions = store.sessions
        .all()
        .filter(
          ({ userId, clientId, status }) =>
            isSelected(url, 'user_id', userId) &&
            isSelected(url, 'client_id', clientId) &&
            isSelected(url, 'status', status),
        );
      const page = pageOf(url, sessions.reverse(), sessionResource);
      return { body: url.searchParams.has('paginated') ? page : page.data };
    },
    'GET /v1/sessions/:id': ({ id }) => ({ body: sessionResource(requireSession(instance, id)) }),
    'POST /v1/sessions/:id/revoke': ({ id }) => {
      const session = requireSession(instance, id);
      return { body: sessionResource(endSession(instance, session, 'revoked')) };
    },
    'POST /v1/sessions/:id/tokens': ({ id, body }) => {
      const { expires_in_seconds: seconds } = parse(TokenRequest, body);
      const session = activeSession(instance, id);
      if (session === undefined) throw notFound(`Active session ${id}`);
      const jwt = issueToken(instance, session, { seconds });
      return { body: { object: 'token', jwt } };
    },
  };
}
