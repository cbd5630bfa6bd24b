'use client';

import { type FormEvent, useState } from 'react';
import { useSession } from '#lib/clerk/browser';
import { type ApiRequest, callApi, type Exchange } from './api';
import styles from './console.module.css';
import { ExchangeView } from './exchange-view';

export function ApiConsole({ identityProviderUserId }: { identityProviderUserId: string }) {
  const session = useSession();
  const [id, setId] = useState(identityProviderUserId);
  const [exchange, setExchange] = useState<Exchange>();
  const [busy, setBusy] = useState(false);

  const send = (request: ApiRequest) => (event: FormEvent) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    void callApi(request, session)
      .then(setExchange)
      .finally(() => setBusy(false));
  };

  const sendMe = send({ method: 'GET', path: '/users/v1/me' });
  const sendRegister = send({
    method: 'POST',
    path: '/auth/v1/register',
    body: JSON.stringify({ identityProviderUserId: id }, null, 2),
  });

  return (
    <section aria-labelledby="console" className={styles['console']}>
      <div className={styles['intro']}>
        <h2 id="console">Call the API</h2>
        <p>These forms send real requests with your session.</p>
      </div>
      <div className={styles['calls']}>
        <form className={`card ${styles['call']}`} onSubmit={sendMe}>
          <h3>
            <code>
              <b data-method="GET">GET</b> /users/v1/me
            </code>
          </h3>
          <p>Returns your two ids.</p>
          <button className="button primary" type="submit" aria-disabled={busy}>
            Send GET<span className="visually-hidden"> /users/v1/me</span>
          </button>
        </form>
        <form className={`card ${styles['call']}`} onSubmit={sendRegister}>
          <h3>
            <code>
              <b data-method="POST">POST</b> /auth/v1/register
            </code>
          </h3>
          <label>
            Identity-provider user id to register
            <input
              autoCapitalize="none"
              autoComplete="off"
              dir="ltr"
              name="identityProviderUserId"
              spellCheck={false}
              value={id}
              onChange={(event) => setId(event.target.value)}
            />
          </label>
          <button className="button" type="submit" aria-disabled={busy}>
            Send POST<span className="visually-hidden"> /auth/v1/register</span>
          </button>
        </form>
      </div>
      <ExchangeView busy={busy} exchange={exchange} />
    </section>
  );
}
