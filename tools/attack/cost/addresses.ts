import * as z from 'zod/mini';
import openapi from '../../../lib/api/openapi.json';
import { PAGES } from '../../../lib/routing/routes';
import { HOOK } from '../../../tests/harness/requests';
import type { CostRequest } from './request';

/** A path of the service, and the properties of an ordinary request to this path. */
export interface CostAddress {
  readonly path: string;
  readonly needsSession: boolean;
  /** Body of a POST request: the documented example, or `{}` if there is none. */
  readonly body: string;
}

const Operation = z.object({
  security: z.optional(z.array(z.record(z.string(), z.unknown()))),
  requestBody: z.optional(
    z.object({
      content: z.object({
        'application/json': z.object({
          examples: z.record(z.string(), z.object({ value: z.unknown() })),
        }),
      }),
    }),
  ),
});
const Paths = z.record(z.string(), z.record(z.string(), Operation));

function documentedAddress([path, operations]: [string, Record<string, z.infer<typeof Operation>>]) {
  const all = Object.values(operations);
  const [example] = all.flatMap(({ requestBody }) =>
    Object.values(requestBody?.content['application/json'].examples ?? {}),
  );
  return {
    path: path.replace(/\{[^}]+\}/g, 'x'),
    needsSession: all.some(({ security = [] }) => security.some((scheme) => 'bearer' in scheme)),
    body: JSON.stringify(example?.value ?? {}),
  };
}

const page = (path: string): CostAddress => ({ path, needsSession: false, body: '{}' });

/**
 * Returns every documented path, every page, an unknown API path, an unknown page, /robots.txt and a static file. In the
 * returned paths, `x` replaces each parameter, and optional catch-all segments are removed.
 */
export function costAddresses(staticFile: string): CostAddress[] {
  return [
    ...Object.entries(Paths.parse(openapi.paths)).map(documentedAddress),
    page('/users/v1/not-found'),
    ...PAGES.map((pattern) => page(pattern.replace(/\/\[\[.*/, '').replace(/\[[^\]]+\]/g, 'x'))),
    page('/not-found'),
    page('/robots.txt'),
    page(staticFile),
  ];
}

/**
 * Returns the ordinary request to an address. This request is small. It has a session if the address needs one, and a body if
 * the method is POST. `npm run attack -- --cost` compares its cost with the cost of requests in which one part, such as the
 * query, is large (dimensions.ts). A request to the webhook does not have a signature, because an attacker cannot sign one.
 */
export function ordinaryRequest(
  { path, needsSession, body }: CostAddress,
  method: CostRequest['method'],
  token: string,
): CostRequest {
  return {
    method,
    target: path,
    headers: [
      ...(needsSession ? [['authorization', `Bearer ${token}`] as const] : []),
      ...(method === 'POST' ? [['content-type', 'application/json'] as const] : []),
    ],
    ...(method === 'POST' ? { body } : {}),
  };
}

/** Returns true for a request to the webhook. */
export const isWebhook = ({ target }: CostRequest): boolean => target === HOOK;
