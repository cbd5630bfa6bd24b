/**
 * The operations that Clerk's APIs offer for an instance whose users have email addresses and passwords. An operation is a
 * method and a path, with `:id` for each parameter. Source: Clerk's OpenAPI documents of API version 2026-05-12
 * (github.com/clerk/openapi-specs, state of 14 August 2026).
 */
const SPECIFICATION: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'Frontend API': {
    Environment: ['GET /.well-known/jwks.json', 'GET /v1/environment', 'PATCH /v1/environment'],
    Client: [
      'GET /v1/client',
      'PUT /v1/client',
      'POST /v1/client',
      'DELETE /v1/client',
      'GET /v1/client/sync',
      'GET /v1/client/link',
      'GET /v1/client/handshake',
    ],
    'Sign-ins': [
      'POST /v1/client/sign_ins',
      'GET /v1/client/sign_ins/:id',
      'POST /v1/client/sign_ins/:id/reset_password',
      'POST /v1/client/sign_ins/:id/prepare_first_factor',
      'POST /v1/client/sign_ins/:id/attempt_first_factor',
      'POST /v1/client/sign_ins/:id/prepare_second_factor',
      'POST /v1/client/sign_ins/:id/attempt_second_factor',
      'GET /v1/tickets/accept',
      'GET /v1/verify',
    ],
    'Sign-ups': [
      'POST /v1/client/sign_ups',
      'GET /v1/client/sign_ups/:id',
      'PATCH /v1/client/sign_ups/:id',
      'POST /v1/client/sign_ups/:id/prepare_verification',
      'POST /v1/client/sign_ups/:id/attempt_verification',
    ],
    'Development browsers': [
      'POST /v1/dev_browser',
      'POST /v1/dev_browser/set_first_party_cookie',
      'GET /v1/dev_browser/init',
    ],
    Sessions: [
      'DELETE /v1/client/sessions',
      'GET /v1/client/sessions/:id',
      'POST /v1/client/sessions/:id/touch',
      'POST /v1/client/sessions/:id/end',
      'POST /v1/client/sessions/:id/remove',
      'POST /v1/client/sessions/:id/tokens',
      'POST /v1/client/sessions/:id/tokens/:id',
      'POST /v1/client/sessions/:id/verify',
      'POST /v1/client/sessions/:id/verify/prepare_first_factor',
      'POST /v1/client/sessions/:id/verify/attempt_first_factor',
      'POST /v1/client/sessions/:id/verify/prepare_second_factor',
      'POST /v1/client/sessions/:id/verify/attempt_second_factor',
    ],
    Devices: ['GET /v1/me/sessions/active', 'POST /v1/me/sessions/:id/revoke', 'GET /v1/me/sessions'],
    'Own account': [
      'GET /v1/me/email_addresses',
      'POST /v1/me/email_addresses',
      'POST /v1/me/email_addresses/:id/attempt_verification',
      'POST /v1/me/email_addresses/:id/prepare_verification',
      'GET /v1/me/email_addresses/:id',
      'DELETE /v1/me/email_addresses/:id',
      'POST /v1/me/totp',
      'DELETE /v1/me/totp',
      'POST /v1/me/totp/attempt_verification',
      'POST /v1/me/backup_codes',
      'GET /v1/me',
      'PATCH /v1/me',
      'DELETE /v1/me',
      'PATCH /v1/me/metadata',
      'POST /v1/me/tokens',
      'POST /v1/me/profile_image',
      'DELETE /v1/me/profile_image',
      'POST /v1/me/change_password',
      'POST /v1/me/remove_password',
    ],
  },
  'Backend API': {
    JWKS: ['GET /v1/jwks'],
    'Email addresses': [
      'POST /v1/email_addresses',
      'GET /v1/email_addresses/:id',
      'DELETE /v1/email_addresses/:id',
      'PATCH /v1/email_addresses/:id',
      'POST /v1/email_addresses/:id/prepare_verification',
      'POST /v1/email_addresses/:id/attempt_verification',
      'PUT /v1/users/:id/email_address',
    ],
    Sessions: [
      'GET /v1/sessions',
      'POST /v1/sessions',
      'GET /v1/sessions/:id',
      'POST /v1/sessions/:id/refresh',
      'POST /v1/sessions/:id/revoke',
      'POST /v1/sessions/:id/tokens',
      'POST /v1/sessions/:id/tokens/:id',
    ],
    Users: [
      'GET /v1/users',
      'POST /v1/users',
      'GET /v1/users/count',
      'GET /v1/users/:id',
      'PATCH /v1/users/:id',
      'DELETE /v1/users/:id',
      'POST /v1/users/:id/ban',
      'POST /v1/users/:id/unban',
      'POST /v1/users/ban',
      'POST /v1/users/unban',
      'POST /v1/users/:id/lock',
      'POST /v1/users/:id/unlock',
      'POST /v1/users/:id/profile_image',
      'DELETE /v1/users/:id/profile_image',
      'PATCH /v1/users/:id/metadata',
      'PUT /v1/users/:id/metadata',
      'POST /v1/users/:id/remove_password',
      'POST /v1/users/:id/verify_password',
      'POST /v1/users/:id/verify_totp',
      'DELETE /v1/users/:id/mfa',
      'DELETE /v1/users/:id/backup_code',
      'DELETE /v1/users/:id/totp',
      'POST /v1/users/:id/password/set_compromised',
      'POST /v1/users/:id/password/unset_compromised',
    ],
    Invitations: [
      'POST /v1/invitations',
      'GET /v1/invitations',
      'POST /v1/invitations/bulk',
      'POST /v1/invitations/:id/revoke',
    ],
    Tickets: [
      'POST /v1/actor_tokens',
      'POST /v1/actor_tokens/:id/revoke',
      'POST /v1/sign_in_tokens',
      'POST /v1/sign_in_tokens/:id/revoke',
      'POST /v1/testing_tokens',
    ],
    'Sign-ups': ['GET /v1/sign_ups/:id', 'PATCH /v1/sign_ups/:id'],
    Client: ['GET /v1/clients', 'POST /v1/clients/verify', 'GET /v1/clients/:id'],
  },
};

/** Features of Clerk's OpenAPI documents that `SPECIFICATION` leaves out, with the number of operations of each feature. */
const OTHER_FEATURES: readonly (readonly [feature: string, operations: number])[] = [
  ['Billing', 33],
  ['Enterprise connections and directories', 44],
  ['OAuth, machines and API keys', 53],
  ['Organizations and roles', 112],
  ['Phone numbers, wallets, passkeys and social accounts', 40],
  ['Settings of the instance and other features', 55],
];

/** Operations that the emulator has in addition to `SPECIFICATION`, with their purpose. */
const REASONS: Readonly<Record<string, string>> = {
  'PATCH /v1/client/sign_ins/:id/protect_check': 'completes a protect check (bot protection)',
  'PATCH /v1/client/sign_ups/:id/protect_check': 'completes a protect check (bot protection)',
  'GET /v1/clients/handshake_payload': 'returns the cookies of a handshake to the Backend SDK',
  'GET /v1/users/:id/deliveries': 'lists webhook deliveries for command lines and tests',
};

const SECTION = /(<!-- npm run emulator:operations -->\n)[\s\S]*(<!-- end -->)/;

/** Replaces the generated section of a README. Throws if the README has no such section. */
export function replaceSection(readme: string, section: string): string {
  if (!SECTION.test(readme)) throw new Error('The README lacks the generated section.');
  return readme.replace(SECTION, (_all, start: string, end: string) => `${start}${section}${end}`);
}

/** Returns Markdown that compares the routes of the emulator with `SPECIFICATION`. */
export function operationsTable(routes: readonly string[]): string {
  const specified = Object.values(SPECIFICATION).flatMap((areas) => Object.values(areas).flat());
  const covered = specified.filter((operation) => routes.includes(operation)).length;
  const additional = routes.filter((route) => !specified.includes(route));
  const unexplained = additional.filter((route) => REASONS[route] === undefined);
  if (unexplained.length > 0)
    throw new Error(`tests/helpers/operations-table.ts lacks ${unexplained.join(', ')}`);
  return `${[
    `The emulator covers ${covered} of Clerk's ${specified.length} operations for users with email addresses and passwords. Missing operations return a 404 in Clerk's format.`,
    ...Object.entries(SPECIFICATION).map(([api, areas]) => section(api, areas, routes)),
    `### Operations that are not in the specification\n\n${additional.map((route) => `- \`${route}\`: ${REASONS[route]}`).join('\n')}`,
    `### Missing features\n\nNumber of operations: ${OTHER_FEATURES.map(([feature, count]) => `${feature} ${count}`).join('; ')}.`,
  ].join('\n\n')}\n`;
}

/** Returns the Markdown of one API: the covered paths with their methods, and the number of missing operations per area. */
function section(
  api: string,
  areas: Readonly<Record<string, readonly string[]>>,
  routes: readonly string[],
): string {
  const methodsByPath = new Map<string, string[]>();
  for (const operation of Object.values(areas).flat()) {
    const [method = '', path = ''] = operation.split(' ');
    if (routes.includes(operation)) methodsByPath.set(path, [...(methodsByPath.get(path) ?? []), method]);
  }
  const width = Math.max(...[...methodsByPath.keys()].map((path) => path.length));
  const rows = [...methodsByPath].map(([path, methods]) => `${path.padEnd(width)}  ${methods.join(',')}`);
  const gaps = Object.entries(areas).flatMap(([area, operations]) => {
    const missing = operations.filter((operation) => !routes.includes(operation)).length;
    return missing === 0 ? [] : [`${area} ${missing}`];
  });
  return `### ${api}\n\n\`\`\`\n${rows.join('\n')}\n\`\`\`\n\nMissing operations: ${gaps.join('; ')}.`;
}
