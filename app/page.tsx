import { headers } from 'next/headers';
import Link from 'next/link';
import { operations } from '#lib/api/document';
import { readVerdict } from '#lib/http/signed-verdict';
import { mainProvider } from '#lib/main-provider';
import styles from './home.module.css';

/** The links load a document, so that the identity provider can renew an expired session. */
const Actions = ({ isSignedIn }: { isSignedIn: boolean }) => (
  <div className="actions">
    {isSignedIn ? (
      <a className="button primary" href={mainProvider.paths.account}>
        Open your account
      </a>
    ) : (
      <>
        <a className="button primary" href={mainProvider.paths.signUp}>
          Create an account
        </a>
        <a className="button" href={mainProvider.paths.signIn}>
          Sign in
        </a>
      </>
    )}
  </div>
);

/** Shows that a first request and a webhook lead to the same link. */
function LinkDiagram() {
  return (
    <figure className={styles['ways']}>
      <ol>
        <li className={`card ${styles['way']}`}>
          <strong>The first request</strong>
          <code>GET /users/v1/me</code>
        </li>
        <li className={`card ${styles['way']}`}>
          <strong>The provider’s webhook</strong>
          <code>user.created</code>
        </li>
        <li className={`card ${styles['row']}`}>
          <strong>One link</strong>
          <span>
            <code>user_2x9Fq…</code> is <code>0199a7c4-…</code>
          </span>
        </li>
      </ol>
      <figcaption>The order does not matter. Later requests and webhooks find the same link.</figcaption>
    </figure>
  );
}

const steps = [
  {
    title: 'A user signs up',
    text: 'The identity provider stores the password and the sessions. Your own data refers only to the internal id.',
  },
  {
    title: 'The first message creates the id',
    text: 'The first message is either a request with a valid session or the signed webhook.',
  },
  {
    title: 'Later messages find the same id',
    text: 'The cache stores the id for ten minutes by default, and the database keeps it. Repeated webhooks do not change the id.',
  },
] as const;

const endpoints = operations.filter(({ tags }) => !tags.includes('service'));

export default async function HomePage() {
  const { user } = readVerdict(await headers());
  return (
    <div className={`shell ${styles['home']}`}>
      <section className={styles['hero']}>
        <div className={styles['pitch']}>
          {/* No-break spaces prevent a line break within "one id" and within "exactly once". */}
          <h1>One user, one&nbsp;id, exactly&nbsp;once.</h1>
          <p className={styles['lead']}>
            A new user of your identity provider reaches your service twice: with the first request and with a
            webhook. The service gives the user one internal id, even if the request and the webhook arrive at
            the same time.
          </p>
          <Actions isSignedIn={user !== undefined} />
        </div>
        <LinkDiagram />
      </section>
      <section aria-labelledby="how">
        <h2 id="how">How it works</h2>
        <ol className={styles['steps']}>
          {steps.map(({ title, text }) => (
            <li key={title}>
              <h3>{title}</h3>
              <p>{text}</p>
            </li>
          ))}
        </ol>
      </section>
      <section aria-labelledby="api">
        <h2 id="api">API</h2>
        <dl className={styles['endpoints']}>
          {endpoints.map(({ method, path, operationId, summary }) => (
            <div key={operationId}>
              <dt>
                <Link href={`/docs#${operationId}`} prefetch={false}>
                  <code>
                    <b data-method={method}>{method}</b> {path}
                  </code>
                </Link>
              </dt>
              <dd>{summary}</dd>
            </div>
          ))}
        </dl>
        <Link className={`button ${styles['more']}`} href="/docs" prefetch={false}>
          Read the API reference
        </Link>
      </section>
    </div>
  );
}
