import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import * as mini from 'zod/mini';
import { defineEvent } from '#lib/events';

test.each([
  ['zod', z.object({ id: z.string() })],
  ['zod/mini', mini.object({ id: mini.string() })],
])(
  'A handler with a %s schema rejects invalid data with a 400 before it opens a transaction',
  async (_name, schema) => {
    const handle = vi.fn(async (_data: { id: string }) => undefined);
    const delivery = { messageId: 'msg_1', occurredAt: 0 };
    await expect(defineEvent(schema, handle)({ id: 7 }, delivery)).rejects.toMatchObject({
      status: 400,
      message: 'Invalid webhook event',
    });
    expect(handle).not.toHaveBeenCalled();
  },
);
