// @ts-check
import { actionButton, copyButton } from './actions.js';
import { call } from './api.js';
import { byId, element, moment, setText } from './dom.js';
import { liveList } from './list.js';

/** @import { Delivery, DeliveryAttempt } from '../../instance/data' */
/** @import { Model } from './live.js' */

const LABELS = { pending: 'Pending', delivered: 'Delivered', failed: 'Failed' };
const STATES = { pending: 'waiting', delivered: 'good', failed: 'bad' };

/** The deliveries, each of which opens to its attempts and its payload. */
export function deliverySection() {
  const render = liveList(byId('delivery-list', HTMLDivElement), {
    name: 'deliveries',
    empty:
      'No deliveries yet. Create a user or send an event: each delivery is listed with what the endpoint answered.',
    pageLength: 25,
    view: deliveryView,
  });
  /** @type {Model | undefined} */
  let model;
  const draw = () => {
    if (model) render([...model.deliveries.values()], model);
  };
  setInterval(draw, 1000);
  /** @param {Model} next */
  return (next) => {
    model = next;
    draw();
  };
}

/** @param {Delivery} delivery */
function deliveryView({ id, type, body, createdAt }) {
  const status = element('span', { class: 'status' });
  const answer = element('span', { class: 'status' });
  const next = element('span');
  const subject = subjectOf(body);
  const attempts = element('ol', { class: 'attempts' });
  const untried = element('p', { class: 'soft' }, 'None so far.');
  const payload = element('pre', {
    class: 'code',
    tabindex: '0',
    role: 'region',
    'aria-label': `Payload of ${type}`,
  });
  const summary = element(
    'summary',
    { class: 'summary' },
    status,
    element('span', { class: 'type' }, type),
    element('span', { class: 'soft' }, moment(createdAt)),
    element('span', { class: 'subject' }, subject),
    element('span', { class: 'outcome' }, answer, next),
  );
  const details = element(
    'details',
    {},
    summary,
    element(
      'div',
      { class: 'delivery-body' },
      element(
        'p',
        { class: 'id' },
        element('code', {}, id),
        copyButton('Copy', `message id ${id}`, () => id),
      ),
      element('h3', {}, 'Attempts'),
      untried,
      attempts,
      element('h3', {}, 'Payload'),
      payload,
      element(
        'div',
        { class: 'actions' },
        actionButton('Redeliver', `${type} ${id}`, () => call('POST', `/api/deliveries/${id}/redeliver`)),
        copyButton('Copy payload', `of ${id}`, () => body),
      ),
    ),
  );
  details.addEventListener('toggle', () => setText(payload, JSON.stringify(JSON.parse(body), null, 2)), {
    once: true,
  });
  return {
    element: element('li', {}, details),
    /**
     * @param {Delivery} delivery
     * @param {Model} model
     */
    update(delivery, model) {
      setText(status, LABELS[delivery.status]);
      status.dataset['state'] = STATES[delivery.status];
      const last = delivery.attempts.at(-1);
      setText(answer, last === undefined ? '' : answerOf(last));
      answer.dataset['state'] = last === undefined || isSuccess(last) ? 'plain' : 'bad';
      setText(next, whatNext(delivery, model));
      // Attempts are only ever added.
      for (const attempt of delivery.attempts.slice(attempts.childElementCount))
        attempts.append(attemptItem(attempt));
      untried.hidden = delivery.attempts.length > 0;
      attempts.hidden = !untried.hidden;
    },
  };
}

/**
 * Whom or what an event is about: its address, or its id. The data may be anything that somebody sent.
 * @param {string} body
 * @returns {string}
 */
function subjectOf(body) {
  const { data } = JSON.parse(body);
  const subject = data?.email_addresses?.[0]?.email_address ?? data?.id;
  return typeof subject === 'string' ? subject : '';
}

/**
 * How often it was tried, and when it will be again.
 * @param {Delivery} delivery
 * @param {Model} model
 */
function whatNext({ status, attempts, nextTryAt }, { endpoint, now }) {
  const count = attempts.length > 1 ? `${attempts.length} attempts` : '';
  const wait = status === 'pending' ? waitOf(nextTryAt ?? 0, endpoint, now()) : '';
  return [count, wait].filter(Boolean).join(' · ');
}

/** @param {DeliveryAttempt} attempt */
function isSuccess({ status }) {
  return status !== null && status >= 200 && status < 300;
}

/** @param {DeliveryAttempt} attempt */
function answerOf({ status }) {
  return status === null ? 'no answer' : `HTTP ${status}`;
}

/**
 * @param {number} nextTryAt
 * @param {Model['endpoint']} endpoint
 * @param {number} now
 */
function waitOf(nextTryAt, endpoint, now) {
  if (endpoint.url === null) return 'waits for an endpoint';
  if (endpoint.paused) return 'waits while paused';
  const seconds = Math.ceil((nextTryAt - now) / 1000);
  return seconds <= 0 ? 'sending' : `next try in ${duration(seconds)}`;
}

/** @param {number} seconds */
function duration(seconds) {
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

/** @param {DeliveryAttempt} attempt */
function attemptItem(attempt) {
  const state = isSuccess(attempt) ? 'good' : 'bad';
  return element(
    'li',
    {},
    element(
      'p',
      {},
      element('span', { class: 'status', 'data-state': state }, answerOf(attempt)),
      element(
        'span',
        { class: 'soft' },
        moment(attempt.at),
        ` · ${Math.round(attempt.durationMilliseconds)} ms`,
      ),
    ),
    element('code', { class: 'answer' }, attempt.answer || '(empty answer)'),
  );
}
