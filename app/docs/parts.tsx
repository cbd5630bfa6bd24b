import { STATUS_CODES } from 'node:http';
import { createElement, Fragment, type ReactNode } from 'react';
import { curl } from './curl';
import styles from './docs.module.css';
import { anchorOf, fragment, type Operation, type Response, responseHeaders, type Schema } from './document';

/** Returns paragraphs in which text between backticks is code. */
export const prose = (text = ''): ReactNode[] =>
  text
    .split('\n\n')
    .filter(Boolean)
    .map((paragraph) =>
      // Passes each piece as an argument. Pieces in an array would need keys, and the text of a piece is not a unique key.
      createElement(
        'p',
        { key: paragraph },
        ...paragraph
          .split(/`([^`]+)`/)
          .map((piece, index) => (index % 2 === 1 ? createElement('code', null, piece) : piece)),
      ),
    );

/** Returns a heading that is a link to itself. */
export const heading = (Level: 'h2' | 'h3' | 'h4', id: string, content: ReactNode) => (
  <Level className={styles['heading']} id={id}>
    <a href={`#${id}`}>{content}</a>
  </Level>
);

/** Returns the HTML of a shell command. CopyButtons adds a button that copies the command. */
export const command = (title: string, text: string) => (
  <figure className={styles['command']}>
    <figcaption>{title}</figcaption>
    <pre>
      <code>{text}</code>
    </pre>
  </figure>
);

export interface Row {
  readonly id?: string;
  readonly name: string;
  readonly kind: readonly (string | undefined)[];
  readonly text: ReactNode;
}

/** Returns a definition list that looks like a table on wide screens. */
export const rows = (list: readonly Row[]) =>
  list.length > 0 && (
    <dl className={styles['rows']}>
      {list.map(({ id, name, kind, text }) => (
        <div key={name} id={id}>
          <dt>
            <code>{name}</code> <span>{kind.filter(Boolean).join(' · ')}</span>
          </dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );

/** Returns the description of a value, and the constants and patterns that its schemas require. */
export const valueText = (description: string | undefined, schemas: readonly Schema[]) => {
  const limits = schemas.flatMap((schema) => [
    ...('const' in schema ? [['always', JSON.stringify(schema.const)]] : []),
    ...schema.enum.map((value, index) => [index === 0 ? 'one of' : 'or', JSON.stringify(value)]),
    ...(schema.pattern ? [['matches', schema.pattern]] : []),
  ]);
  return (
    <>
      {prose(description)}
      {limits.map(([word, code]) => (
        <div key={code}>
          {word} <code>{code}</code>
        </div>
      ))}
    </>
  );
};

type Kind = 'credential' | 'header' | 'value';

export const anchor = (kind: Kind, name: string) => fragment(`${kind} ${name}`);

type Field = readonly [name: string, schema: Schema, isRequired: boolean];

/** Lists the fields of a body. A nested field has the name of its parent as a prefix, for example `errors.database`. */
function fieldsOf({ properties, required, anyOf }: Schema, prefix = ''): Field[] {
  const ownFields = Object.entries(properties).flatMap(([key, field]): Field[] => [
    [prefix + key, field, required.includes(key)],
    ...fieldsOf(field, `${prefix}${key}.`),
  ]);
  const oneOf = anyOf.flatMap((each) => fieldsOf(each, prefix));
  return [...ownFields, ...oneOf.map(([name, field]): Field => [name, field, false])];
}

const fieldRows = (schema: Schema): Row[] =>
  fieldsOf(schema).map(([name, field, isRequired]) => {
    const type = field.type ?? (field.anyOf.length > 0 ? 'object' : 'any JSON');
    const text = field.ref ? links('value', [field.ref]) : valueText(field.description, [field]);
    return { name, kind: [type, isRequired ? undefined : 'optional'], text };
  });

const links = (kind: Kind, names: readonly string[], separator = ', ') =>
  names.map((name, index) => (
    <Fragment key={name}>
      {index > 0 && separator}
      <a href={`#${anchor(kind, name)}`}>
        <code>{name}</code>
      </a>
    </Fragment>
  ));

const statusText = (status: string) => (
  <>
    <b data-status={status.charAt(0)}>{status}</b> {STATUS_CODES[status]}
  </>
);

/** Returns JSON on one line if it is short, and indented otherwise. */
function jsonText(value: unknown): string {
  const line = JSON.stringify(value);
  return line.length < 64 ? line : JSON.stringify(value, null, 2);
}

/** Returns the description of a response: its body, an example and its headers. Omits headers that every response has. */
function responseView(response: Response, level: 'h3' | 'h4') {
  const body = response.content?.['application/json'];
  const [example] = Object.values(body?.examples ?? {});
  // If every field has a constant value, the example shows all of the body, so the list of fields is omitted.
  const isConstant = body && fieldsOf(body.schema).every(([, field]) => 'const' in field);
  const headers = responseHeaders.flatMap(({ name, isEverywhere }) =>
    name in response.headers && !isEverywhere ? [name] : [],
  );
  return (
    <li key={response.id} className={styles['response']}>
      {heading(level, response.id, statusText(response.status))}
      {prose(response.description)}
      {prose(body?.schema.description)}
      {body && !(example && isConstant) && rows(fieldRows(body.schema))}
      {example && <pre>{jsonText(example.value)}</pre>}
      {headers.length > 0 && <p>Headers: {links('header', headers)}</p>}
    </li>
  );
}

/**
 * Describes the responses of a list. A response whose description is at another place on the page becomes a link to that
 * description.
 */
export function responseList(responses: readonly Response[], level: 'h3' | 'h4') {
  const here = responses.filter((response) => anchorOf(response) === response.id);
  const others = responses.filter((response) => !here.includes(response));
  return (
    <>
      {here.length > 0 && (
        <ol className={styles['responses']}>{here.map((each) => responseView(each, level))}</ol>
      )}
      {others.length > 0 && (
        <p className={styles['others']}>
          {here.length > 0 ? 'See also:' : 'See:'}
          {others.map((response) => (
            <a key={response.id} href={`#${anchorOf(response)}`}>
              {statusText(response.status)}
            </a>
          ))}
        </p>
      )}
    </>
  );
}

/** Returns the method and the path of an operation. */
export const operationTitle = ({ method, path }: Operation) => (
  <code>
    <b data-method={method}>{method}</b> <span>{path}</span>
  </code>
);

/** Describes an operation: its credentials, a command that calls it (not for an event), the request and the responses. */
export function operationView(operation: Operation) {
  const { id, kind, method, path, summary, security, requestBody, responses } = operation;
  const body = requestBody?.content['application/json'].schema;
  return (
    <article key={id} aria-labelledby={id} className={styles['operation']}>
      {heading('h3', id, summary)}
      <p className={styles['address']}>{operationTitle(operation)}</p>
      {prose(operation.description)}
      <p>
        <strong>Credentials:</strong> {security.length === 0 && 'none'}
        {security.map((each, index) => (
          <Fragment key={Object.keys(each).join()}>
            {index > 0 && ', or '}
            {links('credential', Object.keys(each), ' and ')}
          </Fragment>
        ))}
      </p>
      {kind === 'path' && command(`${method} ${path}`, curl(operation))}
      {body && (
        <>
          <h4>Request</h4>
          {prose(requestBody?.description)}
          {prose(body.description)}
          {rows(fieldRows(body))}
        </>
      )}
      <h4>Responses</h4>
      {responseList(responses, 'h4')}
    </article>
  );
}
