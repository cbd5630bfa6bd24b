'use client';

import { type FormEvent, useState } from 'react';

/** A form that signs in, or creates an account. Afterwards, the browser opens the home page. */
export function LoginForm() {
  const [problem, setProblem] = useState('');

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const { submitter } = event.nativeEvent instanceof SubmitEvent ? event.nativeEvent : {};
    const action = submitter?.getAttribute('value') ?? 'sign-in';
    const form = new FormData(event.currentTarget);
    const [email, password] = [form.get('email'), form.get('password')];
    const response = await fetch(`/api/auth/${action}/email`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email, password, name: '' }),
    }).catch(() => undefined);
    // Loads the whole page, because the router could show pages from before the sign-in.
    if (response?.ok) location.assign('/');
    else setProblem(response?.status === 429 ? 'Too many attempts. Wait a minute.' : 'This did not work.');
  }

  return (
    <form className="card" onSubmit={submit}>
      <label>
        E-mail address <input name="email" type="email" autoComplete="username" required />
      </label>
      <label>
        Password{' '}
        <input name="password" type="password" autoComplete="current-password" minLength={8} required />
      </label>
      <p role="alert">{problem}</p>
      <div className="actions">
        <button className="button primary" type="submit" value="sign-in">
          Log in
        </button>
        <button className="button" type="submit" value="sign-up">
          Create an account
        </button>
      </div>
    </form>
  );
}
