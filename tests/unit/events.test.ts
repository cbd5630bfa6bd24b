import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import * as mini from 'zod/mini';
import { defineEvent } from '#lib/events';

test.each([
  ['zod', z.object({ id: z.string() })],
  ['zod/mini', mini.object({ id: mini.string() })],
])(
  'A handler from defineEvent() parses the event data with a %s schema, and returns a function that handles the event only if the data is valid',
  (_name, schema) => {
    const handle = vi.fn(async (_data: { id: string }) => undefined);
    const handler = defineEvent(schema, handle);
    expect(() => handler({ id: 7 })).toThrow(
      expect.objectContaining({ status: 400, message: 'Invalid webhook event' }),
    );
    expect(handler({ id: 'user_ada' })).toBeTypeOf('function');
    expect(handle).not.toHaveBeenCalled();
  },
);
