import { type ApiRequest, parse, type Routes } from '../http';
import type { Instance } from '../instance/instance';
import { Settings } from '../instance/settings';
import { changeSettings } from '../instance/token-templates';

/** Returns the routes with which a test controls the emulator. Clerk does not have them. They need the secret key. */
export function controlRoutes(instance: Instance): Routes<ApiRequest, unknown> {
  const { failures, store } = instance;
  return {
    'POST /v1/emulator/reset': () => {
      instance.reset();
      return { settings: instance.settings };
    },
    'GET /v1/emulator/settings': () => instance.settings,
    'PATCH /v1/emulator/settings': ({ body }) =>
      changeSettings(instance, parse(Settings.strict(), { ...instance.settings, ...body })),
    'GET /v1/emulator/mails': () => store.mails.all(),
    'GET /v1/emulator/failures': () => failures.list(),
    'POST /v1/emulator/failures': ({ body }) => failures.add(parse(failures.schema, body)),
    'DELETE /v1/emulator/failures': () => {
      failures.clear();
      return failures.list();
    },
  };
}
