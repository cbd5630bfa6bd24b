import { type NextFetchEvent, type NextMiddleware, type NextRequest, NextResponse } from 'next/server';
import { environment } from './base/env';
import type { Verdict } from './core/verdict';
import { isApi, rejectedStatus } from './http/address';
import {
  type AskProviders,
  type Credential,
  clientHeaders,
  otherCookies,
  otherCredential,
} from './http/credential';
import { nextForDocument, pageAddress, pageHeaders, unavailablePage } from './http/page';
import { type RejectionStatus, rejection } from './http/rejection';
import { type AuthState, signVerdict, VERDICT } from './http/signed-verdict';
import { rejectedActionStatus } from './next/server-action';
import { createAskProviders, type Provider } from './providers';

/** The session of a request, as the main provider and the others decide about it. */
interface RequestSessions {
  /** Returns the auth state of an API request with these headers. */
  api(request: NextRequest, headers: Headers, event: NextFetchEvent): Promise<AuthState>;
  /** Returns the response to a page request. Returns undefined if the session of a server action could not be checked. */
  page(request: NextRequest, event: NextFetchEvent): Promise<Response | undefined>;
  /** Passes a request to the provider's own API. Returns undefined for another request. */
  proxy?(request: NextRequest, event: NextFetchEvent): ReturnType<NextMiddleware> | undefined;
}

/** Returns the sessions of a service whose only providers are those of providers/index.ts. */
function withoutMain(askProviders: AskProviders | undefined): RequestSessions {
  const verdictOn = async (credential: Credential | undefined, address: URL): Promise<Verdict> =>
    (credential && (await askProviders?.(credential, address))) ?? { reason: 'no-credential' };
  return {
    async api({ method, nextUrl }, headers) {
      const { IDP_AUTHORIZED_PARTIES = [] } = environment();
      const credential = otherCredential(method, headers, IDP_AUTHORIZED_PARTIES);
      return [[VERDICT, signVerdict(await verdictOn(credential, nextUrl))]];
    },
    async page(request) {
      const address = pageAddress(request);
      const headers = pageHeaders(request, address);
      const verdict = await verdictOn(otherCookies(headers), address);
      headers.set(VERDICT, signVerdict(verdict));
      const page = nextForDocument(headers);
      return verdict.isUnchecked ? unavailablePage(page, request) : page;
    },
  };
}

/** Forbids everything if a browser opens the response of a route as a document. */
const API_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

function respond(request: NextRequest, status: RejectionStatus, error?: unknown): Response {
  const { headers, body } = rejection(status, request.headers.get('x-request-id'), error);
  return new Response(body, { status, headers });
}

async function handle(sessions: RequestSessions, request: NextRequest, event: NextFetchEvent) {
  const { method, nextUrl, headers } = request;
  const rejected = rejectedStatus({
    method,
    pathname: nextUrl.pathname,
    query: nextUrl.search.slice(1),
    contentLength: headers.get('content-length'),
  });
  if (rejected) return respond(request, rejected);
  if (isApi(nextUrl.pathname)) {
    const forRoute = clientHeaders(headers);
    for (const [name, value] of await sessions.api(request, forRoute, event)) forRoute.set(name, value);
    const policy = { 'content-security-policy': API_POLICY };
    return NextResponse.next({ request: { headers: forRoute }, headers: policy });
  }
  const proxied = sessions.proxy?.(request, event);
  if (proxied) return proxied;
  const rejectedAction = await rejectedActionStatus(request);
  if (rejectedAction) return respond(request, rejectedAction);
  return (await sessions.page(request, event)) ?? respond(request, 503);
}

/**
 * Creates the middleware, which passes the auth state to every route and page (docs/contract.md, 5.1). The guard of a route rejects
 * requests without a session. Throws for a mistake in the list of providers.
 */
export function createMiddleware(
  providers: readonly Provider[],
  createSessions: (askProviders: AskProviders | undefined) => RequestSessions = withoutMain,
): NextMiddleware {
  const sessions = createSessions(createAskProviders(providers));
  return async (request, event) => {
    try {
      return await handle(sessions, request, event);
    } catch (error) {
      return respond(request, 500, error);
    }
  };
}
