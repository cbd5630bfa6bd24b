import type { Metadata } from 'next';
import type { ReactNode } from 'react';
import { CopyButtons } from './copy-buttons';
import styles from './docs.module.css';
import * as api from './document';
import {
  anchor,
  command,
  heading,
  operationTitle,
  operationView,
  prose,
  responseList,
  rows,
  valueText,
} from './parts';

export const metadata: Metadata = {
  title: 'API',
  description: 'The credentials, the request and the responses of each operation of the service.',
};

const section = ({ id, title, content }: { id: string; title: string; content: ReactNode }) => (
  <section key={id} aria-labelledby={id}>
    {heading('h2', id, title)}
    {content}
  </section>
);

const PREPARATION =
  'API=http://localhost:3000\nnpm run -s local create-user\nTOKEN=$(npm run -s local token)';
const SECRET = `WEBHOOK_SECRET=$(node -p "require('./.local/keys.json').webhookSecret")`;

const firstCall = {
  id: 'first-call',
  title: 'Your first call',
  content: (
    <>
      <p>
        Create a user on the local stack and get a session token. A token is valid for 60 seconds. If a call
        returns 401, get a new token.
      </p>
      {command('Prepare the shell', PREPARATION)}
      {command('Call the API', 'curl -i "$API/users/v1/me" -H "authorization: Bearer $TOKEN"')}
      <p>
        The commands on this page use the shell variables <code>API</code> and <code>TOKEN</code>. In the
        pages of your application, <code>await getToken()</code> from <code>useAuth()</code> returns a token.
        The webhook command uses the signing secret of the webhook endpoint instead of a token:
      </p>
      {command('Get the signing secret of the local stack', SECRET)}
    </>
  ),
};

const groups = api.tags.map(({ name, description }) => {
  const operations = api.operations.filter(({ tags }) => tags.includes(name));
  const content = (
    <>
      {prose(description)}
      {operations.map(operationView)}
    </>
  );
  return { id: name, title: name.charAt(0).toUpperCase() + name.slice(1), content, operations };
});

const credentials = Object.entries(api.securitySchemes).map(([name, scheme], _, schemes) => {
  // If several credentials have the same description, only the first one shows it.
  const first = schemes.find(([, { description }]) => description === scheme.description)?.[0];
  return {
    id: anchor('credential', name),
    name,
    kind: [scheme.type === 'http' ? `authorization: ${scheme.scheme} …` : `${scheme.in} ${scheme.name}`],
    text: prose(first === name ? scheme.description : `See \`${first}\`.`),
  };
});

const values = Object.entries(api.schemas)
  // Omits schemas with properties. They describe bodies, which the page shows in the section of each operation.
  .filter(([, { properties }]) => Object.keys(properties).length === 0)
  .map(([name, schema]) => {
    const { type, minLength = 0, maxLength } = schema;
    const kind = [type, maxLength === undefined ? undefined : `${minLength} to ${maxLength} characters`];
    return { id: anchor('value', name), name, kind, text: valueText(schema.description, [schema]) };
  });

const requestHeaders = api.parameters.map(({ name, in: place, description, schema }) => ({
  name,
  kind: [schema.type, place, 'optional'],
  text: prose(description),
}));

const responseHeaders = api.responseHeaders.map(({ name, description, isEverywhere, schemas }) => ({
  id: anchor('header', name),
  name,
  kind: ['string', isEverywhere ? 'always' : 'optional'],
  text: valueText(description, schemas),
}));

/**
 * The first paragraph of the description introduces the API. The other paragraphs are general rules, which the page shows at
 * its end.
 */
const [summary, ...rules] = api.info.description.split('\n\n');

const reference = [
  { id: 'shared-responses', title: 'Shared responses', content: responseList(api.shared, 'h3') },
  { id: 'x-elsewhere', title: 'Other paths and methods', content: responseList(api.elsewhere, 'h3') },
  { id: 'credentials', title: 'Credentials', content: rows(credentials) },
  { id: 'values', title: 'Values', content: rows(values) },
  { id: 'request-headers', title: 'Request headers', content: rows(requestHeaders) },
  { id: 'response-headers', title: 'Response headers', content: rows(responseHeaders) },
  { id: 'rules', title: 'General rules', content: prose(rules.join('\n\n')) },
];

const contentsLink = ({ id, title }: { id: string; title: ReactNode }) => (
  <li key={id}>
    <a href={`#${id}`}>{title}</a>
  </li>
);

/**
 * In the table of contents, highlights the link to the section that is visible. Browsers without `:target-current` ignore this
 * rule. The rule is not in the CSS file, because the CSS compiler of Next.js does not know `:target-current` and would print a
 * warning.
 */
const currentLink = `nav a:target-current {
  border-inline-start-color: var(--brand);
  background: var(--brand-wash);
}`;

const content = (
  <>
    <style>{currentLink}</style>
    <div className={styles['intro']}>
      <h1>The API</h1>
      {prose(summary)}
      <p>
        Version {api.info.version}. Generate clients from the <a href="/openapi.json">OpenAPI document</a>.
      </p>
    </div>
    {section(firstCall)}
    <nav aria-label="Contents" className={styles['contents']}>
      <ul>{contentsLink(firstCall)}</ul>
      {groups.map((group) => (
        <ul key={group.id}>
          {contentsLink(group)}
          {group.operations.map((each) => contentsLink({ id: each.id, title: operationTitle(each) }))}
        </ul>
      ))}
      <ul>{reference.map(contentsLink)}</ul>
    </nav>
    <div className={styles['body']}>
      {groups.map(section)}
      {reference.map(section)}
    </div>
  </>
);

// Next.js rejects a static import of react-dom/server in a server component.
const { renderToStaticMarkup } = await import('react-dom/server');

/**
 * The content of the page as HTML. All visitors get the same content, so it is rendered once per process. If the component
 * returned React elements, Next.js would serialize them twice for every request: as HTML and as data for the browser.
 */
const html = renderToStaticMarkup(content);

export default function DocsPage() {
  return (
    <>
      {/* biome-ignore lint/security/noDangerouslySetInnerHtml: React has escaped the text of the document */}
      <div className={`shell ${styles['docs']}`} dangerouslySetInnerHTML={{ __html: html }} />
      <CopyButtons />
    </>
  );
}
