import { STATUS_CODES } from 'node:http';
import type { Metadata } from 'next';
import { createElement, type ReactNode } from 'react';
import { openApiDocument, operations } from '#lib/api/document';
import { CopyButton } from '../_ui/copy-button';
import styles from './docs.module.css';

export const metadata: Metadata = {
  title: 'API',
  description: 'The credentials, the request and the responses of each operation of the service.',
};

/** Renders paragraphs. Text between backticks is code. */
const Prose = ({ children }: { children: string }) =>
  children.split('\n\n').map((paragraph) => {
    const pieces = paragraph.split(/`([^`]+)`/);
    const nodes = pieces.map((piece, index) =>
      index % 2 === 1 ? createElement('code', null, piece) : piece,
    );
    return createElement('p', { key: paragraph }, ...nodes);
  });

const Command = ({ title, children }: { title: string; children: string }) => (
  <figure className={`card ${styles['command']}`}>
    <figcaption>
      {title}
      <CopyButton name={`command: ${title}`} value={children} />
    </figcaption>
    <pre>{children}</pre>
  </figure>
);

const Section = ({ id, title, children }: { id: string; title: string; children: ReactNode }) => (
  <section aria-labelledby={id}>
    <h2 id={id}>{title}</h2>
    {children}
  </section>
);

const Entry = ({ id, term, children }: { id?: string; term: ReactNode; children: ReactNode }) => (
  <div id={id}>
    <dt>{term}</dt>
    <dd>{children}</dd>
  </div>
);

type Operation = (typeof operations)[number];

const Title = ({ method, path }: Operation) => (
  <code>
    <b data-method={method}>{method}</b> {path}
  </code>
);

/** Returns JSON in which each short value is on one line. */
function format(value: unknown, indent = '\n'): string {
  const line = JSON.stringify(value);
  if (line.length < 72 || typeof value !== 'object' || value === null || Array.isArray(value)) return line;
  const fields = Object.entries(value).map(([name, field]) => `"${name}": ${format(field, `${indent}  `)}`);
  return `{${indent}  ${fields.join(`,${indent}  `)}${indent}}`;
}

const examplesOf = ({ content }: Operation['responses'][string]) =>
  Object.values(content['application/json'].examples ?? {}).map(({ value }) => value);

/** Returns a shell command that calls the operation. The doctor sends signed events. */
function commandOf({ path, requestBody }: Operation, credentials: readonly string[]): string {
  if (credentials.includes('signature')) return 'npm run -s local doctor';
  const words = [
    `curl -i "$API${path}"`,
    ...(credentials.includes('bearer') ? ['-H "authorization: Bearer $TOKEN"'] : []),
    ...(requestBody ? [`--data '${JSON.stringify(examplesOf(requestBody)[0])}'`] : []),
  ];
  return words.join(' \\\n  ');
}

const OperationView = (operation: Operation) => {
  const { operationId: id, summary, description, requestBody, responses } = operation;
  const credentials = operation.security.flatMap(Object.keys);
  const schema = requestBody?.content['application/json'].schema.$ref?.split('/').at(-1);
  return (
    <article aria-labelledby={id}>
      <h3 id={id}>{summary}</h3>
      <p className={styles['address']}>
        <Title {...operation} />
      </p>
      <Prose>{description}</Prose>
      {requestBody && <Prose>{`Body: \`${schema}\`. ${requestBody.description}`}</Prose>}
      <Prose>{`Credentials: ${credentials.map((name) => `\`${name}\``).join(' or ') || 'none'}.`}</Prose>
      <Command title={`${operation.method} ${operation.path}`}>{commandOf(operation, credentials)}</Command>
      <dl>
        {Object.entries(responses).map(([status, response]) => (
          <Entry
            key={status}
            term={
              <>
                <b data-status={status.charAt(0)}>{status}</b> {STATUS_CODES[status]}
              </>
            }
          >
            <Prose>{response.description}</Prose>
            {Object.entries(response.headers ?? {}).map(([name, header]) => (
              <Prose key={name}>{`\`${name}\`: ${header.description}`}</Prose>
            ))}
            {examplesOf(response).length > 0 && (
              <pre>
                {examplesOf(response)
                  .map((each) => format(each))
                  .join('\n')}
              </pre>
            )}
          </Entry>
        ))}
      </dl>
    </article>
  );
};

const { info, tags, components } = openApiDocument;
const [summary = '', ...rules] = info.description.split('\n\n');
/** Returns the commands that set the variables of the other commands. */
const preparation = () =>
  `API=${process.env['PUBLIC_ORIGIN'] || 'http://localhost:3000'}\nnpm run -s local create-user\nTOKEN=$(npm run -s local token)`;

export default function DocsPage() {
  return (
    <div className={`shell ${styles['docs']}`}>
      <header>
        <h1>The API</h1>
        <Prose>{summary}</Prose>
        <p>
          Version {info.version}. Generate clients from the <a href="/openapi.json">OpenAPI document</a>.
        </p>
      </header>
      <nav aria-label="Contents">
        <a href="#first-call">Your first call</a>
        {operations.map((operation) => (
          <a key={operation.operationId} href={`#${operation.operationId}`}>
            <Title {...operation} />
          </a>
        ))}
        <a href="#rules">General rules</a>
        <a href="#credentials">Credentials</a>
        <a href="#schemas">Schemas</a>
      </nav>
      <div className={styles['body']}>
        <Section id="first-call" title="Your first call">
          <p>
            Create a user on the local stack and get a session token, which is valid for 60 seconds. In the
            pages of your application, <code>await session.getToken()</code> from <code>useSession()</code>{' '}
            returns a token. The commands below use the variables <code>API</code> and <code>TOKEN</code>.
          </p>
          <Command title="Prepare the shell">{preparation()}</Command>
        </Section>
        {tags.map(({ name, description }) => (
          <Section key={name} id={name} title={name.charAt(0).toUpperCase() + name.slice(1)}>
            <Prose>{description}</Prose>
            {operations
              .filter((operation) => operation.tags.includes(name))
              .map((operation) => (
                <OperationView key={operation.operationId} {...operation} />
              ))}
          </Section>
        ))}
        <Section id="rules" title="General rules">
          <Prose>{rules.join('\n\n')}</Prose>
        </Section>
        <Section id="credentials" title="Credentials">
          <dl>
            {Object.entries(components.securitySchemes).map(([name, { description }]) => (
              <Entry key={name} term={<code>{name}</code>}>
                <Prose>{description}</Prose>
              </Entry>
            ))}
          </dl>
        </Section>
        <Section id="schemas" title="Schemas">
          <dl>
            {Object.entries(components.schemas).map(([name, { description, ...schema }]) => (
              <Entry key={name} term={<code>{name}</code>}>
                <Prose>{description}</Prose>
                <pre>{format(schema).replaceAll('#/components/schemas/', '')}</pre>
              </Entry>
            ))}
          </dl>
        </Section>
      </div>
    </div>
  );
}
