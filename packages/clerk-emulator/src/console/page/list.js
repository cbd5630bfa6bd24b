// @ts-check
import { html, useState } from './preact.js';

/**
 * A list that shows the last row first. It shows `pageLength` rows, and a button adds the next `pageLength` rows. `view` returns
 * an `li` with the row's key, so that open, focused and edited elements keep their state.
 * @template Row
 * @param {{ name: string, empty: string, pageLength: number, rows: readonly Row[], view: (row: Row) => unknown }} props
 */
export function List({ name, empty, pageLength, rows, view }) {
  const [length, setLength] = useState(pageLength);
  const left = rows.length - length;
  if (rows.length === 0) return html`<p class="empty soft">${empty}</p>`;
  return html`
    <ol class="stack list ${name}">${rows.slice(-length).reverse().map(view)}</ol>
    ${
      left > 0 &&
      html`
        <button class="button small more" type="button" onClick=${() => setLength(length + pageLength)}>
          Show ${Math.min(left, pageLength)} more<span class="visually-hidden"> of ${left} ${name}</span>
        </button>
      `
    }
  `;
}
