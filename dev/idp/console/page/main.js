// @ts-check
import { deliverySection } from './deliveries.js';
import { byId, setText } from './dom.js';
import { endpointSection } from './endpoint.js';
import { follow } from './live.js';
import { mailSection } from './mails.js';
import { announceNews } from './news.js';
import { eventForm } from './send-event.js';
import { userSection } from './users.js';

const sections = [mailSection(), userSection(), endpointSection(), deliverySection()];
eventForm();

const connection = byId('connection', HTMLParagraphElement);
const stale = byId('stale', HTMLDivElement);

follow({
  changed(model, news) {
    for (const render of sections) render(model);
    const sizes = { mails: model.mails.size, users: model.users.size, deliveries: model.deliveries.size };
    for (const [name, size] of Object.entries(sizes)) {
      setText(byId(`${name}-count`, HTMLSpanElement), String(size));
    }
    if (news) announceNews(news);
  },
  connection(lostSince) {
    setText(connection, lostSince ? 'Reconnecting…' : 'Live');
    connection.dataset['state'] = lostSince ? 'bad' : 'good';
    stale.hidden = lostSince === undefined;
    const since = lostSince?.toLocaleTimeString();
    setText(
      stale,
      since
        ? `The local stack does not answer. Below is what was known at ${since}. It goes on once the stack is back.`
        : '',
    );
  },
});
