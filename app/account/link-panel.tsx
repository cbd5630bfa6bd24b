'use client';

import { useSession, useUser } from '#lib/idp/browser';
import { CopyButton } from '../_ui/copy-button';
import ui from '../_ui/ui.module.css';
import styles from './account.module.css';
import { provenance } from './provenance';
import { type LinkState, useLink } from './use-link';

const announcements = {
  loading: 'Loading your ids.',
  linked: 'Your ids are shown.',
  ended: 'Your session has ended.',
  down: 'Your ids could not be loaded. This page tries again automatically.',
} as const;

const Skeleton = () => <span aria-hidden="true" className={styles['skeleton']} />;

const day = new Intl.DateTimeFormat('en', { dateStyle: 'long' });

/** Shows the e-mail address of the user and the date of the sign-up. Both values come from the identity provider. */
function Person() {
  const { user } = useUser();
  return (
    <div className={`card ${styles['person']}`}>
      {user ? (
        <>
          <strong>{user.primaryEmailAddress?.emailAddress ?? user.id}</strong>
          <span>{user.createdAt ? `Signed up on ${day.format(user.createdAt)}` : null}</span>
        </>
      ) : (
        <>
          <Skeleton />
          <Skeleton />
        </>
      )}
    </div>
  );
}

/** Shows an id with a button that copies it. Without a value, shows a placeholder. */
export function Id({ name, value }: { name: string; value: string | undefined }) {
  return (
    <div className={styles['id']}>
      <dt>{name}</dt>
      <dd>
        {value === undefined ? (
          <Skeleton />
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
  const { link, response } = state.status === 'linked' ? state : { link: undefined, response: undefined };
  const source = response && provenance(response.headers);
  return (
    <div className={styles['link']}>
      <Person />
      <dl className={`card ${styles['ids']}`}>
        <Id name="Identity-provider user id" value={link?.identityProviderUserId} />
        <Id name="Internal user id" value={link?.userId} />
        <div className={styles['source']}>
          <dt>Source</dt>
          <dd>
            {source ? (
              <>
                <strong>{source.title}.</strong> {source.text}
              </>
            ) : (
              <Skeleton />
            )}
          </dd>
        </div>
      </dl>
    </div>
  );
}

function Ended() {
  return (
    <div className={`card ${ui['notice']}`}>
      <h3>Your session has ended</h3>
      <p>
        The session expired, or you signed out here or on another device. Your internal id stays the same.
      </p>
      <div className="actions">
        {/* A plain link loads a new document, so the identity provider's browser SDK drops its cached session. */}
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
  const { response } = state;
  const requestId = response?.headers.get('x-request-id');
  return (
    <div className={`card ${ui['notice']} ${ui['trouble']}`}>
      <h3>{response ? 'The service failed' : 'The service cannot be reached'}</h3>
      <p>
        {response
          ? `It returned status ${response.status}. You are still signed in. This page tries again automatically.`
          : 'There was no response. Check your connection. This page tries again automatically.'}
      </p>
      {requestId ? (
        <p>
          Request id: <code className={styles['reference']}>{requestId}</code>
        </p>
      ) : null}
      <div className="actions">
        <button className="button" type="button" aria-disabled={busy} onClick={check}>
          {busy ? 'Loading…' : 'Try again'}
        </button>
      </div>
    </div>
  );
}

/**
 * Shows the identity-provider user id and the internal id of the signed-in user. Also shows where the service found the link
 * between these ids. After a failure, shows the error and what to do about it.
 */
export function LinkPanel() {
  const { state, busy, check } = useLink(useSession());
  return (
    <section aria-labelledby="ids" aria-busy={busy} className={styles['panel']}>
      <div className={styles['panelHead']}>
        <h2 id="ids">Your ids</h2>
        {state.status === 'linked' ? (
          <button className={`button ${ui['copy']}`} type="button" aria-disabled={busy} onClick={check}>
            Refresh
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
