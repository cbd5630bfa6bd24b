'use client';

import { useCallback, useEffect, useRef, useState } from 'react';
import type { UserLink } from '#lib/api/schemas';
import { type ApiResponse, callApi, type Session } from './api';

/**
 * The state of the link between the user's id at the identity provider and the user's internal id. `ended`: the session has
 * ended. `down`: the service failed or cannot be reached.
 */
export type LinkState =
  | { readonly status: 'loading' }
  | {
      readonly status: 'linked';
      readonly link: UserLink;
      readonly response: ApiResponse;
    }
  | { readonly status: 'ended' }
  | { readonly status: 'down'; readonly response: ApiResponse | undefined };

/**
 * Parses the response of GET /users/v1/me. Does not use zod, because zod calls `new Function()`, which the
 * Content-Security-Policy of the page forbids.
 */
function readLink(text: string): UserLink | undefined {
  const body: unknown = JSON.parse(text);
  if (typeof body !== 'object' || body === null) return undefined;
  if (!('userId' in body && 'identityProviderUserId' in body)) return undefined;
  const { userId, identityProviderUserId } = body;
  if (typeof userId !== 'string' || typeof identityProviderUserId !== 'string') return undefined;
  return { userId, identityProviderUserId };
}

function linkState(response: ApiResponse | undefined): LinkState {
  if (response?.status === 401) return { status: 'ended' };
  if (response?.status !== 200) return { status: 'down', response };
  try {
    const link = readLink(response.body);
    return link ? { status: 'linked', link, response } : { status: 'down', response };
  } catch {
    return { status: 'down', response };
  }
}

const FIRST_RETRY_MS = 2_000;
const MAX_RETRY_MS = 30_000;

/**
 * Loads the link of the signed-in user. `check` loads the link again, unless a request is in flight. While the state is `down`,
 * the hook calls `check` after increasing delays and as soon as the browser is online again.
 */
export function useLink(session: Session): { state: LinkState; busy: boolean; check: () => void } {
  const [state, setState] = useState<LinkState>({ status: 'loading' });
  const [busy, setBusy] = useState(false);
  const inFlight = useRef(false);
  const latestSession = useRef(session);
  useEffect(() => {
    latestSession.current = session;
  });

  const check = useCallback(() => {
    if (inFlight.current) return;
    inFlight.current = true;
    setBusy(true);
    void callApi({ method: 'GET', path: '/users/v1/me' }, latestSession.current)
      .then(({ response }) => setState(linkState(response)))
      .finally(() => {
        inFlight.current = false;
        setBusy(false);
      });
  }, []);

  useEffect(check, [check]);

  const failures = useRef(0);
  useEffect(() => {
    if (state.status !== 'down') {
      failures.current = 0;
      return;
    }
    const timer = setTimeout(check, Math.min(FIRST_RETRY_MS * 2 ** failures.current, MAX_RETRY_MS));
    failures.current += 1;
    window.addEventListener('online', check);
    return () => {
      clearTimeout(timer);
      window.removeEventListener('online', check);
    };
  }, [state, check]);

  return { state, busy, check };
}
