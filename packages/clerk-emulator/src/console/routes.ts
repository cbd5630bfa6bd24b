import { z } from 'zod';
import type { Routes } from '../http';
import {
  acceptPassword,
  activeSession,
  createSession,
  createUser,
  deleteUser,
  EmailAddress,
  endSession,
  issueToken,
  requireSession,
  requireUser,
} from '../instance/accounts';
import { ApiError, notFound } from '../instance/error';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { exampleEventData } from './examples';

const NewUser = z.strictObject({ email: EmailAddress, password: z.string().optional() });
const NewEvent = z.strictObject({
  type: z.string().trim().min(1, 'an event must have a type').max(200),
  data: z.record(z.string(), z.unknown()),
});
const EndpointChange = z.strictObject({
  paused: z.boolean().exactOptional(),
  signatureBroken: z.boolean().exactOptional(),
  delaySeconds: z.number().min(0).max(86_400).exactOptional(),
  copies: z.int().min(1).max(10).exactOptional(),
});
const Empty = z.strictObject({});

/** Returns the routes for the actions of the console, which is the web page of the emulator. */
export function consoleRoutes(instance: Instance): Routes {
  const { store, webhooks, failures } = instance;
  return {
    'POST /api/users': ({ body }) => {
      const { email, password } = parse(NewUser, body);
      const hash = password === undefined ? null : acceptPassword(password, 'password');
      return { status: 201, body: { id: createUser(instance, { emails: [email], password: hash }).id } };
    },
    'DELETE /api/users/:id': ({ id, body }) => {
      parse(Empty, body);
      deleteUser(instance, requireUser(instance, id));
      return { body: { id } };
    },
    'POST /api/users/:id/sessions': ({ id, body }) => {
      parse(Empty, body);
      const session = createSession(instance, requireUser(instance, id), newId('client'));
      return { status: 201, body: { id: session.id } };
    },
    'POST /api/sessions/:id/revoke': ({ id, body }) => {
      parse(Empty, body);
      const session = requireSession(instance, id);
      return { body: { id, status: endSession(instance, session, 'revoked').status } };
    },
    'POST /api/sessions/:id/token': ({ id, body }) => {
      parse(Empty, body);
      const session = activeSession(instance, id);
      if (session === undefined) throw new ApiError(409, 'session_over', 'This session is over.');
      return { body: { token: issueToken(instance, session), seconds: instance.sessionTokenSeconds } };
    },
    'GET /api/example-events/:id': ({ id }) => ({ body: exampleEventData(instance, id) }),
    'POST /api/deliveries': ({ body }) => {
      const { type, data } = parse(NewEvent, body);
      return { status: 201, body: { id: webhooks.send(type, data).id } };
    },
    'POST /api/deliveries/:id/redeliver': ({ id, body }) => {
      parse(Empty, body);
      if (store.deliveries.get(id) === undefined) throw notFound(`Delivery ${id}`);
      return { body: { id: webhooks.redeliver(id).id } };
    },
    'POST /api/failures': ({ body }) => ({
      status: 201,
      body: { id: failures.add(parse(failures.schema, body)).id },
    }),
    'PATCH /api/endpoint': ({ body }) => {
      const { paused, ...settings } = parse(EndpointChange, body);
      webhooks.configure(settings);
      if (paused === true) webhooks.pause();
      if (paused === false) webhooks.resume();
      return { body: { ...webhooks.settings, paused: webhooks.paused } };
    },
  };
}

/** Parses a body. Throws a 422 with a readable message and the name of the invalid field. */
function parse<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new ApiError(422, 'invalid', issue?.message ?? 'Invalid body', issue?.path[0]?.toString());
}
