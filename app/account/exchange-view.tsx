'use client';

import type { ApiAnswer, ApiRequest, Exchange } from './api';
import styles from './console.module.css';
import { isFirstSight } from './provenance';

const meanings: Readonly<Record<number, string>> = {
  200: 'The link existed.',
  201: 'Created: nobody had linked this id before.',
  400: 'The request was refused as malformed.',
  401: 'The session has ended. Sign in again.',
  413: 'The request was too large.',
  500: 'The service failed. Nothing was half done; it is safe to send again.',
};

/** The headers that tell something about this service; a browser shows the rest. */
const HEADERS_OF_INTEREST = ['content-type', 'cache-control', 'server-timing', 'x-request-id'];

function requestText({ method, path, body }: ApiRequest): string {
  const head = [`${method} ${path}`, 'cookie: __session=(your session token)'];
  return body === undefined
    ? head.join('\n')
    : [...head, 'content-type: application/json', '', body].join('\n');
}

function answerText({ status, statusText, headers, body }: ApiAnswer): string {
  const shown = HEADERS_OF_INTEREST.flatMap((name) => {
    const value = headers.get(name);
    return value === null ? [] : [`${name}: ${value}`];
  });
  return [`${status} ${statusText}`.trim(), ...shown, '', body].join('\n');
}

function Message({ title, text }: { title: string; text: string }) {
  return (
    <div className={styles['message']}>
      <h3>{title}</h3>
      <section aria-label={title} className={`card ${styles['text']}`}>
        <pre>{text}</pre>
      </section>
    </div>
  );
}

function outcome({ request, answer }: Exchange): string {
  if (!answer) return 'No answer came. Check your connection and send again.';
  const { status, statusText, headers, milliseconds } = answer;
  const madeTheLink = status === 200 && request.method === 'GET' && isFirstSight(headers);
  const meaning = madeTheLink ? 'This request made the link.' : (meanings[status] ?? statusText);
  return `${status}: ${meaning} ${milliseconds} ms.`;
}

/** The last call: method, path and body as sent; status, body and the headers of interest as received. */
export function ExchangeView({ exchange, busy }: { exchange: Exchange | undefined; busy: boolean }) {
  return (
    <div aria-busy={busy} className={styles['exchange']}>
      <p className={(exchange?.answer?.status ?? 400) < 400 ? styles['good'] : undefined} role="status">
        {busy
          ? 'Waiting for the answer…'
          : exchange
            ? outcome(exchange)
            : 'Nothing sent yet. The request and its answer appear here.'}
      </p>
      {exchange ? (
        <div className={styles['messages']}>
          <Message title="Request" text={requestText(exchange.request)} />
          <Message title="Response" text={exchange.answer ? answerText(exchange.answer) : '(none)'} />
        </div>
      ) : null}
    </div>
  );
}
