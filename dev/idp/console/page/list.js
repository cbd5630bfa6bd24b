// @ts-check
import { element, unseen } from './dom.js';

/** @import { Model } from './live.js' */

/**
 * The element of a row, and how it follows the row.
 * @template Row
 * @typedef {object} RowView
 * @property {HTMLElement} element
 * @property {(row: Row, model: Model) => void} update
 */

/**
 * A list of rows, newest first, a page of them and more when asked. The element of a row is made once and then
 * updated, so that what is open, focused or half typed stays so; focus in a row that leaves goes to the heading.
 * Returns what is to be called, with all rows, oldest first, whenever something has changed.
 * @template {{ readonly id: string }} Row
 * @param {HTMLElement} place
 * @param {{ name: string, empty: string, pageLength: number, view: (row: Row) => RowView<Row> }} options
 * @returns {(rows: readonly Row[], model: Model) => void}
 */
export function liveList(place, { name, empty, pageLength, view: viewOf }) {
  const list = element('ol', { class: `list ${name}` });
  const nothing = element('p', { class: 'empty' }, empty);
  const more = element('button', { class: 'button small more', type: 'button', hidden: true });
  place.append(nothing, list, more);
  /** @type {Map<string, RowView<Row>>} */
  const views = new Map();
  let length = pageLength;
  let showMore = () => {};
  more.addEventListener('click', () => {
    length += pageLength;
    showMore();
  });

  /** @param {ReadonlySet<string>} ids */
  const removeAllBut = (ids) => {
    for (const [id, { element: item }] of views) {
      if (ids.has(id)) continue;
      const hadFocus = item.contains(document.activeElement);
      item.remove();
      views.delete(id);
      if (hadFocus) place.closest('section')?.querySelector('h2')?.focus();
    }
  };

  return function render(rows, model) {
    const shown = rows.slice(-length).reverse();
    removeAllBut(new Set(shown.map(({ id }) => id)));
    shown.forEach((row, index) => {
      const view = views.get(row.id) ?? viewOf(row);
      views.set(row.id, view);
      view.update(row, model);
      // Moving an element would take the focus from it. Rows keep their order, so that only new ones are put in.
      if (list.children[index] !== view.element)
        list.insertBefore(view.element, list.children[index] ?? null);
    });
    const left = rows.length - shown.length;
    nothing.hidden = rows.length > 0;
    list.hidden = rows.length === 0;
    more.hidden = left === 0;
    more.replaceChildren(`Show ${Math.min(left, pageLength)} more`, unseen(` of ${left} ${name}`));
    showMore = () => render(rows, model);
  };
}
