import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import * as mini from 'zod/mini';
import { defineEvent } from '#lib/events';

test.each([
  ['zod', z.object({ id: z.string() })],
  ['zod/mini', mini.object({ id: mini.string() })],
])(
  'A handler that defineEvent() creates with a %s schema throws a 400 for invalid data. For valid data, it returns a function that handles the event',
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
