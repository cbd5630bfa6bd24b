import { createReceiveWebhook } from './core/webhook';
import { link } from './link';

export type { EventHandlers } from './core/webhook';
export { limitWebhookBody } from './core/webhook';
export const receiveWebhook = createReceiveWebhook(link);
