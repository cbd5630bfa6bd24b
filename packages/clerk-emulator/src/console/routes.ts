import { z } from 'zod';
import { parse, type Routes } from '../http';
import { requireFound } from '../instance/api-error';
import type { Instance } from '../instance/instance';
import { exampleEventData } from './examples';

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

/** Returns the routes for the actions of the console, the web page of the emulator, that the Backend API does not have. */
export function consoleRoutes(instance: Instance): Routes {
  const { store, webhooks } = instance;
  return {
    'GET /api/example-events/:id': ({ id }) => ({ body: exampleEventData(instance, id) }),
    'POST /api/deliveries': ({ body }) => {
      const { type, data } = parse(NewEvent, body);
      return { status: 201, body: { id: webhooks.send(type, data).id } };
    },
    'POST /api/deliveries/:id/redeliver': ({ id }) => ({ body: { id: webhooks.redeliver(id).id } }),
    'DELETE /api/clients/:id': ({ id }) => {
      store.oauthClients.delete(requireFound(store.oauthClients.get(id), `The client ${id}`).id);
      for (const grant of store.oauthGrants.where('clientId', id)) store.oauthGrants.delete(grant.id);
      return { body: { id } };
    },
    'PATCH /api/endpoint': ({ body }) => {
      webhooks.configure(parse(EndpointChange, body));
      return { body: webhooks.settings };
    },
  };
}
