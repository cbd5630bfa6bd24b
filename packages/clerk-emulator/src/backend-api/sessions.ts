import { z } from 'zod';
import { type ApiRequest, parse, type Routes } from '../http';
import { activeSession, createSession, endSession, requireSession, requireUser } from '../instance/accounts';
import { requireFound } from '../instance/api-error';
import type { Session } from '../instance/data';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { issueToken } from '../instance/issued-tokens';
import { sessionResource, sessionStatus } from '../instance/resources';
import { describeList, optionalPage } from './lists';

const CreateSession = z.strictObject({
  user_id: z.string(),
  active_organization_id: z.string().nullish(),
});
/** The lifetime of a token is between 30 seconds and ten years. */
const TokenRequest = z.strictObject({
  expires_in_seconds: z.number().int().min(30).max(315_360_000).nullish(),
});

/** Returns the routes for sessions and their tokens. No browser has the client id of a session of `POST /v1/sessions`. */
export function sessionRoutes(instance: Instance): Routes<ApiRequest, unknown> {
  const { store } = instance;
  const shown = (session: Session) => sessionResource(instance, session);
  const selectSessions = describeList<Session>({
    fields: {
      user_id: ({ userId }) => [userId],
      client_id: ({ clientId }) => [clientId],
      status: (session) => [sessionStatus(instance, session)],
    },
    filters: 'user_id client_id status',
    others: 'limit offset paginated',
  });
  /** The second id in the path is the name of a token template. */
  const token = ({ id, otherId, body }: ApiRequest) => {
    const { expires_in_seconds: seconds } = parse(TokenRequest, body);
    const session = requireFound(activeSession(instance, id), `Active session ${id}`);
    const template = otherId || undefined;
    return {
      object: 'token',
      jwt: issueToken(instance, session, { seconds: seconds ?? undefined, template }),
    };
  };
  return {
    'POST /v1/sessions': ({ body }) => {
      const { user_id, active_organization_id: organizationId } = parse(CreateSession, body);
      const user = requireUser(instance, user_id);
      return shown(createSession(instance, user, newId('client'), organizationId));
    },
    'GET /v1/sessions': ({ url }) => {
      const sessions = store.sessions.all().map(({ id }) => requireSession(instance, id));
      return optionalPage(url, selectSessions(sessions.reverse(), url), shown);
    },
    'GET /v1/sessions/:id': ({ id }) => shown(requireSession(instance, id)),
    'POST /v1/sessions/:id/revoke': ({ id }) => {
      const session = requireSession(instance, id);
      return shown(endSession(instance, session, 'revoked'));
    },
    'POST /v1/sessions/:id/tokens': token,
    'POST /v1/sessions/:id/tokens/:otherId': token,
  };
}
