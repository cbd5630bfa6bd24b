import { z } from 'zod';
import { resource } from './differences';
import { BackendUser, DeletedObject, metadata, text, time } from './resources';

/*
 * Schemas of the resources of the Backend API and of webhook payloads. Clerk's OpenAPI document of API version 2026-05-12
 * specifies the resources. The document of API version 2025-04-15 specifies the payloads. Source: see resources.ts.
 */

const sessionFields = {
  object: z.literal('session'),
  id: text,
  user_id: text,
  client_id: text,
  actor: metadata.nullish(),
  status: z.enum(['active', 'revoked', 'ended', 'expired', 'removed', 'abandoned', 'replaced', 'pending']),
  last_active_organization_id: text.nullish(),
  last_active_at: time,
  latest_activity: z.unknown().optional(),
  expire_at: time,
  abandon_at: time,
  created_at: time,
  updated_at: time,
  tasks: z.unknown().optional(),
};

export const BackendSession = resource('backend session', sessionFields);

/**
 * Returns the schema of a list. If a request has the query parameter `paginated`, the response also contains the total count.
 * The OpenAPI document describes only the response to a request without `paginated`.
 */
export const listOf = (element: z.ZodType) =>
  z.union([z.array(element), z.strictObject({ data: z.array(element), total_count: z.int() })]);

export const TotalCount = resource('total count', {
  object: z.literal('total_count'),
  total_count: z.int(),
});

export const SignInToken = resource('sign-in token', {
  object: z.literal('sign_in_token'),
  id: text,
  status: z.enum(['pending', 'accepted', 'revoked']),
  user_id: text,
  token: text.optional(),
  url: text.nullish(),
  created_at: time,
  updated_at: time,
});

export const TestingToken = resource('testing token', {
  object: z.literal('testing_token'),
  token: text,
  expires_at: z.int(),
});

export const Invitation = resource('invitation', {
  object: z.literal('invitation'),
  id: text,
  email_address: z.email(),
  public_metadata: metadata,
  revoked: z.boolean().optional(),
  status: z.enum(['pending', 'accepted', 'revoked', 'expired']),
  url: text.optional(),
  expires_at: time.nullish(),
  created_at: time,
  updated_at: time,
});

const event = (type: string, data: z.ZodType) =>
  resource('event', {
    object: z.literal('event'),
    type: z.literal(type),
    data,
    event_attributes: z
      .strictObject({
        http_request: z.strictObject({ client_ip: text.optional(), user_agent: text.optional() }).optional(),
      })
      .optional(),
    timestamp: time,
    instance_id: text,
  });

const SessionWithUser = resource('backend session', { ...sessionFields, user: BackendUser });

/** Schemas of the bodies of webhook deliveries, by event type. */
export const EVENTS: Readonly<Record<string, z.ZodType>> = {
  'user.created': event('user.created', BackendUser),
  'user.updated': event('user.updated', BackendUser),
  'user.deleted': event('user.deleted', DeletedObject),
  'session.created': event('session.created', SessionWithUser),
  'session.ended': event('session.ended', SessionWithUser),
  'session.removed': event('session.removed', SessionWithUser),
  'session.revoked': event('session.revoked', SessionWithUser),
};
