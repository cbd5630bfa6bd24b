// @ts-check
import { html, useState } from './preact.js';

const TIMEOUT_MS = 10_000;

/**
 * Calls the server of the console and returns the response body. Throws an error with a message for the user if the call fails.
 * @param {'GET' | 'POST' | 'PATCH' | 'DELETE'} method
 * @param {string} path
 * @param {unknown} [body]
 */
export async function call(method, path, body = {}) {
  const response = await fetch(path, {
    method,
    signal: AbortSignal.timeout(TIMEOUT_MS),
    ...(method !== 'GET' && {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  }).catch(() => {
    throw new Error('The emulator does not respond. Is it still running?');
  });
  const result = await response.json();
  if (response.ok) return result;
  throw new Error(result.message);
}

/**
 * Returns the element with an id. Throws if there is no such element of that kind.
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
export function byId(id, kind) {
  const found = document.getElementById(id);
  if (found instanceof kind) return found;
  throw new Error(`The page has no #${id}`);
}

/**
 * Runs an action and shows its error in the `.error` element beside the control.
 * @param {HTMLElement} control
 * @param {() => Promise<unknown>} run
 */
export async function attempt(control, run) {
  const error = control.closest('.action, form')?.querySelector('.error');
  error?.replaceChildren();
  await run().catch((reason) => error?.replaceChildren(reason.message));
}

/**
 * Runs an action with the fields of a form when the form is submitted.
 * @param {string} id
 * @param {(fields: Record<string, string>) => Promise<unknown>} run
 */
export function onSubmit(id, run) {
  const form = byId(id, HTMLFormElement);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const fields = [...new FormData(form)].map(([name, value]) => [name, String(value)]);
    void attempt(form, () => run(Object.fromEntries(fields)));
  });
}

const time = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const dayAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/**
 * A point in time in milliseconds since the epoch. The date is in the tooltip.
 * @param {{ at: number }} props
 */
export const Moment = ({ at }) =>
  html`<time datetime=${new Date(at).toISOString()} title=${dayAndTime.format(at)}>${time.format(at)}</time>`;

/**
 * A button that runs an action. If there is a question, the user must confirm it first. `about` names the object of the action
 * for screen readers.
 * @param {{ label: string, about: string, question?: string, run: () => Promise<unknown> }} props
 */
export function Action({ label, about, question, run }) {
  const press = (/** @type {{ currentTarget: HTMLElement }} */ { currentTarget }) => {
    if (question === undefined || confirm(question)) void attempt(currentTarget, run);
  };
  return html`
    <span class="action row">
      <button class="button small ${question && 'risky'}" type="button" onClick=${press}>
        <span>${label}</span><span class="visually-hidden"> ${about}</span>
      </button>
      <span class="error" role="alert" />
    </span>
  `;
}

/**
 * A button that copies a text.
 * @param {{ label: string, about: string, text: () => string | Promise<string> }} props
 */
export function Copy({ label, about, text }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(await text());
    setCopied(true);
    setTimeout(() => setCopied(false), 2500);
  };
  return html`<${Action} label=${isCopied ? 'Copied' : label} about=${about} run=${copy} />`;
}

/**
 * A list of rows. `view` returns an `li` with the key of the row, so that open and focused elements keep their state.
 * @template Row
 * @param {{ name: string, empty: string, rows: readonly Row[], view: (row: Row) => unknown }} props
 */
export const List = ({ name, empty, rows, view }) =>
  rows.length === 0
    ? html`<p class="empty soft">${empty}</p>`
    : html`<ol class="stack list ${name}">${rows.map(view)}</ol>`;
