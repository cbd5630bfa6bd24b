'use client';

import type { ApiRequest, ApiResponse, Exchange } from './api';
import styles from './console.module.css';

/**
 * Meaning of each status. A link is a database row with the two ids of a user: the id at the identity provider and the internal
 * id of the service.
 */
const meanings: Readonly<Record<number, string>> = {
  200: 'The link exists.',
  201: 'The link was created.',
  400: 'The request was rejected as malformed.',
  401: 'The session has ended. Sign in again.',
  403: 'This deployment registers only your own id.',
  409: 'An operator has deleted this user.',
  413: 'The request body is too large.',
  500: 'The service failed. It is safe to send the request again.',
};

/** The response headers that the page shows. The browser's developer tools show all headers. */
const SHOWN_HEADERS = ['content-type', 'cache-control', 'server-timing', 'x-request-id'];

function requestText({ method, path, body }: ApiRequest): string {
  const head = [`${method} ${path}`, 'cookie: __session=(your session token)'];
  return body === undefined
    ? head.join('\n')
    : [...head, 'content-type: application/json', '', body].join('\n');
}

function indented(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

function responseText({ status, statusText, headers, body }: ApiResponse): string {
  const shown = SHOWN_HEADERS.flatMap((name) => {
    const value = headers.get(name);
    return value === null ? [] : [`${name}: ${value}`];
  });
  return [`${status} ${statusText}`.trim(), ...shown, '', indented(body)].join('\n');
}

function Message({ title, text }: { title: string; text: string }) {
  return (
    <div className={styles['message']}>
      <h3>{title}</h3>
      {/* Lines do not wrap, so a line with a long id makes the box scroll horizontally. */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable with the keyboard */}
      <section aria-label={title} className={`card ${styles['text']}`} tabIndex={0}>
        <pre>{text}</pre>
      </section>
    </div>
  );
}

function Outcome({ response }: Exchange) {
  if (!response) return 'There was no response. Check your connection and send the request again.';
  const { status, statusText, milliseconds } = response;
  return (
    <>
      <b data-status={String(status).charAt(0)}>{status}</b> {meanings[status] ?? statusText} Response time:{' '}
      {milliseconds} ms.
    </>
  );
}

export function ExchangeView({ exchange, busy }: { exchange: Exchange | undefined; busy: boolean }) {
  return (
    <div aria-busy={busy} className={styles['exchange']}>
      <p role="status">
        {busy ? 'Waiting for the response…' : null}
        {!busy && exchange ? <Outcome {...exchange} /> : null}
        {busy || exchange ? null : 'Send a request to see it here together with its response.'}
      </p>
      {exchange ? (
        <div className={styles['messages']}>
          <Message title="Request" text={requestText(exchange.request)} />
          <Message title="Response" text={exchange.response ? responseText(exchange.response) : '(none)'} />
        </div>
      ) : null}
    </div>
  );
}
