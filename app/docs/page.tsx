import type { Metadata } from 'next';
import { headers as requestHeaders } from 'next/headers';
import { SECRET, TOKEN } from './curl';
import { answerHeaders, commonParameters, sharedAnswers, values } from './described-once';
import styles from './docs.module.css';
import { elsewhere, info, operations, securitySchemes, tags } from './document';
import { AnswerView, credentialId, headerId, OperationView, parameterRow } from './operation-view';
import { Command, Heading, Limits, lengthOf, Prose, Rows, valueId } from './parts';

export const metadata: Metadata = {
  title: 'API',
  description: 'Every operation of the service: who may call it, with what, and all that it answers.',
};

/** A name or an IPv4 address, and perhaps a port: nothing that a shell reads as anything else. */
const HOST = /^[a-z\d][a-z\d.-]*(?::\d{1,5})?$/i;

/** The origin that the page was asked for at; where the request names none, that of the local stack. */
async function ownOrigin(): Promise<string> {
  const given = await requestHeaders();
  const host = given.get('host') ?? '';
  const scheme = given.get('x-forwarded-proto') === 'https' ? 'https' : 'http';
  return HOST.test(host) ? `${scheme}://${host}` : 'http://localhost:3000';
}

const groups = tags.map(({ name, description }) => ({
  ...{ id: name, title: name.charAt(0).toUpperCase() + name.slice(1), description },
  operations: operations.filter((operation) => operation.tags.includes(name)),
}));

const before = { id: 'before', title: 'Before the first call' } as const;
const credentials = { id: 'credentials', title: 'Credentials' } as const;
const anyOperation = { id: 'any-operation', title: 'Answers of several operations' } as const;
const anywhere = { id: 'x-elsewhere', title: 'Elsewhere' } as const;
const valuesAndHeaders = { id: 'values', title: 'Values and headers' } as const;

function Contents() {
  const link = ({ id, title }: { id: string; title: string }) => (
    <li key={id}>
      <a href={`#${id}`}>{title}</a>
    </li>
  );
  return (
    <nav aria-label="Contents" className={styles['contents']}>
      <ul>{link(before)}</ul>
      {groups.map((group) => (
        <ul key={group.id}>
          {link(group)}
          {group.operations.map(({ id, method, path, kind }) => (
            <li key={id}>
              <a href={`#${id}`}>
                <code>
                  <b>{kind === 'path' ? method : 'event'}</b> {path}
                </code>
              </a>
            </li>
          ))}
        </ul>
      ))}
      <ul>{[anyOperation, anywhere, credentials, valuesAndHeaders].map(link)}</ul>
    </nav>
  );
}

function BeforeTheFirstCall({ origin }: { origin: string }) {
  return (
    <section aria-labelledby={before.id}>
      <Heading id={before.id} level="h2">
        {before.title}
      </Heading>
      <p>
        Each command can be pasted into a shell as it is. It asks <code>{origin}</code>, where you read this,
        and takes a session token from <code>{TOKEN}</code>. A token is valid for 60 seconds: take a new one
        when the answer is 401.
      </p>
      <Command title="A token of the local stack">
        {`npm run -s local create-user\n${TOKEN}=$(npm run -s local token)`}
      </Command>
      <p>
        In a page of your own, <code>await getToken()</code> of <code>useAuth()</code> gives one. The webhook
        is signed with the secret of its endpoint, from <code>{SECRET}</code>.
      </p>
      <Command title="The signing secret of the local stack">
        {`${SECRET}=$(node -p "require('./.local/keys.json').webhookSecret")`}
      </Command>
    </section>
  );
}

function Credentials() {
  const schemes = Object.entries(securitySchemes);
  return (
    <section aria-labelledby={credentials.id}>
      <Heading id={credentials.id} level="h2">
        {credentials.title}
      </Heading>
      <Rows
        rows={schemes.map(([name, scheme]) => {
          const alike = schemes.find(([, { description }]) => description === scheme.description)?.[0];
          return {
            id: credentialId(name),
            name,
            kind: [
              scheme.type === 'http' ? `authorization: ${scheme.scheme} …` : `${scheme.in} ${scheme.name}`,
            ],
            text: <Prose>{alike === name ? scheme.description : `As \`${alike}\`.`}</Prose>,
          };
        })}
      />
    </section>
  );
}

function ValuesAndHeaders() {
  return (
    <section aria-labelledby={valuesAndHeaders.id}>
      <Heading id={valuesAndHeaders.id} level="h2">
        {valuesAndHeaders.title}
      </Heading>
      <h3 className={styles['caption']}>Values</h3>
      <Rows
        rows={values.map(({ name, schema }) => ({
          ...{ id: valueId(name), name, kind: [schema.type, lengthOf(schema)] },
          text: (
            <>
              <Prose>{schema.description}</Prose>
              <Limits forms={[schema]} />
            </>
          ),
        }))}
      />
      <h3 className={styles['caption']}>Headers of any request</h3>
      <Rows rows={commonParameters.map(parameterRow)} />
      <h3 className={styles['caption']}>Headers of the answers</h3>
      <Rows
        rows={answerHeaders.map(({ name, description, isAlways, forms }) => ({
          ...{ id: headerId(name), name, kind: ['string', isAlways ? 'always' : 'where it applies'] },
          text: (
            <>
              <Prose>{description}</Prose>
              <Limits forms={forms} />
            </>
          ),
        }))}
      />
    </section>
  );
}

/** The whole API, of the document that the service serves; without a script of its own. */
export default async function DocsPage() {
  const origin = await ownOrigin();
  return (
    <div className={`shell ${styles['docs']}`}>
      <div className={styles['intro']}>
        <h1>The API</h1>
        <Prose>{info.description}</Prose>
        <p>
          Version {info.version}. For programs: the <a href="/openapi.json">OpenAPI document</a>, of which
          this page is made.
        </p>
      </div>
      <Contents />
      <div className={styles['body']}>
        <BeforeTheFirstCall origin={origin} />
        {groups.map((group) => (
          <section key={group.id} aria-labelledby={group.id}>
            <Heading id={group.id} level="h2">
              {group.title}
            </Heading>
            <Prose>{group.description}</Prose>
            {group.operations.map((operation) => (
              <OperationView key={operation.id} operation={operation} origin={origin} />
            ))}
          </section>
        ))}
        {[
          {
            ...anyOperation,
            text: 'In front of the operations, or in each of them.',
            answers: sharedAnswers,
          },
          { ...anywhere, text: 'To any other address, or by another method.', answers: elsewhere },
        ].map(({ id, title, text, answers }) => (
          <section key={id} aria-labelledby={id}>
            <Heading id={id} level="h2">
              {title}
            </Heading>
            <p>{text}</p>
            <ol className={styles['answers']}>
              {answers.map((answer) => (
                <AnswerView key={answer.id} answer={answer} level="h3" />
              ))}
            </ol>
          </section>
        ))}
        <Credentials />
        <ValuesAndHeaders />
      </div>
    </div>
  );
}
