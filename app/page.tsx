import Link from 'next/link';
import { Show } from '#lib/idp/components';
import styles from './home.module.css';

function SignedInState() {
  return (
    <Show
      when="signed-in"
      fallback={
        <div className={styles['state']}>
          <p>
            <strong>You are signed out.</strong> Create an account and watch both ways meet in one link.
          </p>
          <div className="actions">
            <Link className="button primary" href="/sign-up">
              Create an account
            </Link>
            <Link className="button" href="/sign-in">
              Sign in
            </Link>
          </div>
        </div>
      }
    >
      <div className={styles['state']}>
        <p>
          <strong>You are signed in.</strong> Your account page shows your two ids and how they were linked.
        </p>
        <div className="actions">
          <Link className="button primary" href="/account">
            See your link
          </Link>
        </div>
      </div>
    </Show>
  );
}

/** Two arrivals, one row: what the service does, as a drawing that reads in order without its lines. */
function TwoWays() {
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
      <figcaption>In either order, at once, or many times over: the link is made once.</figcaption>
    </figure>
  );
}

const steps = [
  {
    title: 'Somebody signs up',
    text: 'The identity provider keeps the password and the session. Your data should not depend on its ids.',
  },
  {
    title: 'Whichever comes first, registers',
    text: 'The first request with a valid session, or the signed webhook: either one creates the internal user.',
  },
  {
    title: 'Everyone after finds the same id',
    text: 'From a cache for ten minutes, from the database after that. A repeated webhook changes nothing.',
  },
] as const;

const endpoints = [
  {
    method: 'GET',
    path: '/users/v1/me',
    id: 'get-users-v1-me',
    text: 'Who is calling: both ids of the signed-in user.',
  },
  {
    method: 'POST',
    path: '/auth/v1/register',
    id: 'post-auth-v1-register',
    text: 'Creates or resolves the link: 201 if new, 200 if known.',
  },
  {
    method: 'POST',
    path: '/webhooks/idp/v1/user-created',
    id: 'post-webhooks-idp-v1-user-created',
    text: 'Receives the provider’s signed events.',
  },
] as const;

/** What this is, and whether you are signed in; for everybody. */
export default function HomePage() {
  return (
    <div className={`shell ${styles['home']}`}>
      <section className={styles['hero']}>
        <div className={styles['pitch']}>
          <h1>One user, one id, whichever comes first.</h1>
          <p className={styles['lead']}>
            When somebody signs up at your identity provider, your service hears of it twice: by that person’s
            first request and by the provider’s webhook. This service turns both into one internal user id,
            exactly once.
          </p>
          <SignedInState />
        </div>
        <TwoWays />
      </section>
      <section aria-labelledby="how">
        <h2 id="how">How a link comes about</h2>
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
        <h2 id="api">The API it comes with</h2>
        <dl className={styles['endpoints']}>
          {endpoints.map(({ method, path, id, text }) => (
            <div key={path}>
              <dt>
                <Link href={`/docs#${id}`} prefetch={false}>
                  <code>
                    <b>{method}</b> {path}
                  </code>
                </Link>
              </dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
        <Link className={`button ${styles['more']}`} href="/docs" prefetch={false}>
          Read the whole API
        </Link>
      </section>
    </div>
  );
}
