import { Webhook } from 'svix';
import { limitBody } from './body';
import { HttpError } from './error';
import type { Link } from './link';
import { outcomeOf } from './register';
import { fieldsOf, isIdentityProviderUserId, parseJson } from './values';

/** Message of the 400 for every signature error. It does not state which check failed. */
export const INVALID_SIGNATURE = 'Invalid webhook signature';
/** Message of the 400 for a verified body that is not a valid event. */
export const INVALID_EVENT = 'Invalid webhook event';
const MAX_BYTES = 256 * 1024;

/** Limits the body of a delivery to 256 KiB. `text()` returns the exact text that is signed. */
export const limitWebhookBody = (request: Request) =>
  limitBody(request, { maxBytes: MAX_BYTES, notUtf8: INVALID_SIGNATURE });

/** A delivery with a verified signature. */
export interface Delivery {
  /** Id of the message that contains the event. It is the same in each delivery of the message. */
  readonly messageId: string;
  /** Time of the event in milliseconds since 1970. For an event without a valid `timestamp`, the time of the delivery. */
  readonly occurredAt: number;
}

/** Handlers by event type. A handler throws an HttpError 400 for invalid data. */
export type EventHandlers = Readonly<Record<string, (data: unknown, delivery: Delivery) => Promise<unknown>>>;

/** A message id without dots, because dots separate the id, the timestamp and the body in the signed text. */
const MESSAGE_ID = /^[\w:-]{1,255}$/;
/** A time in seconds since 1970 without sign or leading zeros. */
const TIMESTAMP = /^[1-9]\d{0,14}$/;
/** At most 16 signatures, at least one of them in the form that svix compares. Other headers cost no hash of the body. */
const SIGNATURES = /^(?=.*\bv1,[A-Za-z0-9+/]{43}=)\S+(?: +\S+){0,15} *$/;

function isSigned(payload: string, headers: Record<string, string>, secret: string): boolean {
  try {
    new Webhook(secret).verify(payload, headers);
    return true;
  } catch (error) {
    // After a signature that matches, svix parses the body. Nothing else throws a SyntaxError.
    return error instanceof SyntaxError;
  }
}

/** Verifies the signature over the exact bytes of the body. Returns undefined if no signing secret matches. */
function verify(payload: string, headers: Headers, secrets: readonly string[]): Delivery | undefined {
  const header = (name: string) => headers.get(`svix-${name}`) ?? headers.get(`webhook-${name}`) ?? '';
  const [id, timestamp, signatures] = [header('id'), header('timestamp'), header('signature')];
  if (!MESSAGE_ID.test(id) || !TIMESTAMP.test(timestamp) || !SIGNATURES.test(signatures)) return undefined;
  const signed = { 'svix-id': id, 'svix-timestamp': timestamp, 'svix-signature': signatures };
  const isVerified = secrets.some((secret) => isSigned(payload, signed, secret));
  return isVerified ? { messageId: id, occurredAt: Number(timestamp) * 1_000 } : undefined;
}

const MAX_CLOCK_DIFFERENCE_MS = 24 * 3_600_000;

/** Returns true for a time in milliseconds since 1970 that is at most a day ahead. A later one would outdate all next events. */
export const isEventTime = (time: unknown): time is number =>
  Number.isSafeInteger(time) && Number(time) <= Date.now() + MAX_CLOCK_DIFFERENCE_MS;

/** Body of the 200 response to a webhook (docs/contract.md, 2.5). */
export interface Acknowledgment {
  readonly received: true;
  readonly eventType: string;
}

/** Creates the function that receives deliveries for a link. */
export function createReceiveWebhook({ register, observer }: Pick<Link, 'register' | 'observer'>) {
  /** Registers the user of a `user.created` event. Returns false if the event has no user id, or if the user is forgotten. */
  async function registerUser(data: unknown): Promise<boolean> {
    const { id } = fieldsOf(data);
    if (id === undefined || id === null || id === '') return false;
    if (!isIdentityProviderUserId(id)) throw new HttpError(400, INVALID_EVENT);
    const registration = await register('user', id);
    observer.note({ registered: outcomeOf(registration) });
    return registration.state === 'linked';
  }

  /**
   * Verifies a delivery, registers the user of a `user.created` event, and runs the handler of the event, if there is one
   * (docs/contract.md, 4.2 and 6.1). `payload` must be the exact text of the body, and one of the signing `secrets` must match.
   * Deliveries may arrive late, repeatedly and in any order.
   *
   * Throws an HttpError 400 for a missing body, an invalid signature, and a verified body that is not a valid event. Passes errors
   * of the store and of the handler through, so that the sender repeats the delivery.
   */
  return async function receiveWebhook(
    payload: string,
    headers: Headers,
    secrets: readonly string[],
    handlers: EventHandlers = {},
  ): Promise<Acknowledgment> {
    if (payload === '') throw new HttpError(400, 'Missing body');
    const delivery = await observer.span(
      'verify webhook',
      async () => verify(payload, headers, secrets),
      (verified) => (verified ? 'verified' : 'rejected'),
    );
    if (!delivery) throw new HttpError(400, INVALID_SIGNATURE);
    observer.note({ messageId: delivery.messageId.slice(0, 64) });
    const { type, data, timestamp: time } = fieldsOf(parseJson(payload));
    if (typeof type !== 'string') throw new HttpError(400, INVALID_EVENT);
    observer.note({ eventType: type.slice(0, 64) });
    const acknowledgment = { received: true, eventType: type } as const;
    if (type === 'user.created' && !(await registerUser(data))) return acknowledgment;
    const occurredAt = isEventTime(time) ? time : delivery.occurredAt;
    if (Object.hasOwn(handlers, type)) await handlers[type]?.(data, { ...delivery, occurredAt });
    return acknowledgment;
  };
}
