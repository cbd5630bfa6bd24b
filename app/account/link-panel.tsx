'use client';

import { useAuth } from '#lib/idp/browser';
import { CopyButton } from '../_ui/copy-button';
import ui from '../_ui/ui.module.css';
import styles from './account.module.css';
import { provenance } from './provenance';
import { type LinkState, useLink } from './use-link';

const announcements = {
  loading: 'Asking the service for your link.',
  linked: 'Your link is shown.',
  ended: 'Your session has ended.',
  down: 'The service does not answer. It is asked again by itself.',
} as const;

function Id({ name, value }: { name: string; value: string | undefined }) {
  return (
    <div className={styles['id']}>
      <dt>{name}</dt>
      <dd>
        {value === undefined ? (
          <span aria-hidden="true" className={styles['skeleton']} />
        ) : (
          <>
            <code>{value}</code>
            <CopyButton name={name} value={value} />
          </>
        )}
      </dd>
    </div>
  );
}

function Ids({ state }: { state: Extract<LinkState, { status: 'loading' | 'linked' }> }) {
  const { link, answer } = state.status === 'linked' ? state : { link: undefined, answer: undefined };
  const origin = answer && provenance(answer.headers);
  return (
    <dl className={`card ${styles['ids']}`}>
      <Id name="Identity-provider user id" value={link?.identityProviderUserId} />
      <Id name="Internal user id" value={link?.userId} />
      <div className={styles['origin']}>
        <dt>How this answer came about</dt>
        <dd>
          {origin ? (
            <>
              <strong>{origin.title}.</strong> {origin.text}
            </>
          ) : (
            <span aria-hidden="true" className={styles['skeleton']} />
          )}
        </dd>
      </div>
    </dl>
  );
}

function Ended() {
  return (
    <div className={`card ${ui['notice']}`}>
      <h3>Your session has ended</h3>
      <p>
        You were signed out, here or elsewhere. Your link is kept: sign in to the same account to see it
        again.
      </p>
      <div className="actions">
        {/* A full load: what the browser SDK still remembers of the session is dropped with the page. */}
        <a className="button primary" href="/sign-in?redirect_url=%2Faccount">
          Sign in again
        </a>
      </div>
    </div>
  );
}

function Down({
  state,
  check,
  busy,
}: {
  state: Extract<LinkState, { status: 'down' }>;
  check: () => void;
  busy: boolean;
}) {
  const { answer } = state;
  const requestId = answer?.headers.get('x-request-id');
  return (
    <div className={`card ${ui['notice']} ${ui['trouble']}`}>
      <h3>{answer ? 'The service has trouble' : 'The service cannot be reached'}</h3>
      <p>
        {answer
          ? `It answered with status ${answer.status}. You are still signed in, and this page asks again by itself.`
          : 'No answer came. Check your connection; this page asks again by itself.'}
      </p>
      {requestId ? (
        <p>
          Request id: <code className={styles['reference']}>{requestId}</code>
        </p>
      ) : null}
      <div className="actions">
        <button className="button primary" type="button" aria-disabled={busy} onClick={check}>
          {busy ? 'Asking…' : 'Ask now'}
        </button>
      </div>
    </div>
  );
}

/** Both ids of the signed-in user and how the service came by them; or why they cannot be shown, and what to do. */
export function LinkPanel() {
  const { state, busy, check } = useLink(useAuth());
  return (
    <section aria-labelledby="link" aria-busy={busy} className={styles['panel']}>
      <div className={styles['panelHead']}>
        <h2 id="link">The link</h2>
        {state.status === 'linked' ? (
          <button className={`button ${ui['copy']}`} type="button" aria-disabled={busy} onClick={check}>
            Ask again
          </button>
        ) : null}
      </div>
      <div className={styles['body']}>
        {state.status === 'loading' || state.status === 'linked' ? <Ids state={state} /> : null}
        {state.status === 'ended' ? <Ended /> : null}
        {state.status === 'down' ? <Down busy={busy} check={check} state={state} /> : null}
      </div>
      <p className="visually-hidden" role="status">
        {announcements[state.status]}
      </p>
    </section>
  );
}
