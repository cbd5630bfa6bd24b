import { readdirSync, readFileSync } from 'node:fs';
import { constants } from '@clerk/backend/internal';
import { RSC_SEGMENTS_DIR_SUFFIX, RSC_SUFFIX } from 'next/dist/lib/constants';
import { parseAndValidateFlightRouterState } from 'next/dist/server/app-render/parse-and-validate-flight-router-state';
import { getSortedRoutes } from 'next/dist/shared/lib/router/utils/sorted-routes';
import { NextResponse } from 'next/server';
import { expect, test } from 'vitest';
import * as sdk from '#lib/clerk/sdk-formats';
import { isAlias } from '#lib/next/app-files';
import { cancelRewrite, isMiddlewareHeader, passedHeader } from '#lib/next/middleware-headers';
import { dropInvalidRouterState } from '#lib/next/router-state';

// What Next.js and the provider's SDK do not document, and the service relies on. An upgrade that changes it fails here, with the
// name of the fact.

const sourceOf = (file: string) => readFileSync(`node_modules/next/dist/${file}`, 'utf8');

test.each([
  [
    'reads the configuration of a build from a variable',
    'server/config.js',
    '__NEXT_PRIVATE_STANDALONE_CONFIG',
  ],
  [
    'responds to a prefetch by the middleware itself',
    'server/base-server.js',
    "req.headers['x-middleware-prefetch']",
  ],
  ['reads the id of an action from a header', 'client/components/app-router-headers.js', "'next-action'"],
  ['names the fields of bound arguments', 'server/app-render/action-handler.js', "'$ACTION_REF_'"],
])('Next.js %s', (_fact, file, text) => {
  expect(sourceOf(file)).toContain(text);
});

test('Next.js serves a route also under its path with these suffixes', () => {
  expect([`/a${RSC_SUFFIX}`, `/a${RSC_SEGMENTS_DIR_SUFFIX}/b`].map(isAlias)).toEqual([true, true]);
});

test('Next.js tries a folder before a parameter, and a catch-all last', () => {
  const ordered = ['/p/v1', '/p/[slug]', '/p/[slug]/v1/[id]', '/p/[slug]/v1/[...rest]', '/[[...path]]'];
  expect(getSortedRoutes([...ordered].reverse())).toEqual(ordered);
});

test('Next.js passes request headers and a rewrite of the middleware in response headers', () => {
  const request = { headers: new Headers({ 'x-passed': 'value' }) };
  expect(passedHeader(NextResponse.next({ request }), 'x-passed')).toBe('value');
  const rewritten = NextResponse.rewrite('https://app.example/other');
  expect([...rewritten.headers.keys()].every(isMiddlewareHeader)).toBe(true);
  cancelRewrite(rewritten);
  expect(rewritten.headers).toEqual(NextResponse.next().headers);
});

test.each([
  '["",{}]',
  '["",{"children":["a",{}]}]',
  '["",{"children":[["id","1","d",null],{}]}]',
  '["",{"children":[["id","1","x",null],{}]}]',
  '["",{},null,"refetch"]',
  '["",{},null,"other"]',
  '["",{},null,null,1]',
  '[""]',
  '{}',
  'null',
])('Next.js accepts a state of the router that the service passes on, and no other: %s', (state) => {
  const headers = new Headers({ 'next-router-state-tree': encodeURIComponent(state) });
  dropInvalidRouterState(headers);
  const parse = () => parseAndValidateFlightRouterState(encodeURIComponent(state));
  if (headers.has('next-router-state-tree')) expect(parse).not.toThrow();
  else expect(parse).toThrow();
});

test.each([
  ['with the key __proto__', '["",{"__proto__":["",{}]}]'],
  ['with the escaped key __proto__', '["",{"\\u005f_proto__":["",{}]}]'],
  ['of more than 4,000 characters', JSON.stringify(['x'.repeat(4_000), {}])],
])('Next.js gets no state of the router %s', (_what, state) => {
  const headers = new Headers({ 'next-router-state-tree': encodeURIComponent(state) });
  dropInvalidRouterState(headers);
  expect(headers.has('next-router-state-tree')).toBe(false);
});

test('The SDK has these names of headers, cookies and parameters', () => {
  const { Headers: headers, Cookies: cookies, QueryParameters: parameters } = constants;
  expect(sdk.SESSION_HEADERS).toEqual([headers.AuthStatus, headers.AuthToken, headers.AuthSignature]);
  expect(sdk.REPORT_HEADERS).toEqual([headers.AuthStatus, headers.AuthReason, headers.AuthMessage]);
  expect(sdk.NO_REDIRECT[0]).toBe(headers.SecFetchDest);
  const session = [cookies.Session, cookies.ClientUat, cookies.DevBrowser];
  expect(session.filter((name) => !sdk.SDK_COOKIE.test(name))).toEqual([]);
  expect(sdk.SESSION_COOKIE.test(cookies.Session)).toBe(true);
  const renewal = [cookies.Refresh, cookies.Handshake, cookies.HandshakeNonce];
  expect(renewal.filter((name) => !sdk.RENEWAL_COOKIE.test(name))).toEqual([]);
  expect([sdk.HANDSHAKE, sdk.NONCE]).toEqual([cookies.Handshake, cookies.HandshakeNonce]);
  expect([sdk.HANDSHAKE, sdk.NONCE, sdk.REDIRECT_PARAMETER]).toEqual([
    parameters.Handshake,
    parameters.HandshakeNonce,
    parameters.ClerkRedirectUrl,
  ]);
});

test('Only lib/next and server.ts name what Next.js does not document', () => {
  const files = ['app', 'commands', 'dev', 'events', 'lib'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
  );
  const named = [...files, 'middleware.ts', 'next.config.ts', 'instrumentation.ts']
    .filter((file) => /\.tsx?$/.test(file) && !/^lib\/(?:next|generated)\//.test(file))
    .filter((file) =>
      /next\/dist|__NEXT|x-middleware-|next-router-state-tree|next-action/.test(readFileSync(file, 'utf8')),
    );
  expect(named).toEqual([]);
});
