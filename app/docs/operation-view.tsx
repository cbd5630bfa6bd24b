import { STATUS_CODES } from 'node:http';
import { Fragment } from 'react';
import { curl } from './curl';
import { commonParameters, homeOf } from './described-once';
import styles from './docs.module.css';
import { type Answer, fragment, type Operation } from './document';
import {
  answeredRows,
  Command,
  Example,
  Heading,
  isConstant,
  Prose,
  type Row,
  Rows,
  sentRows,
} from './parts';

export const credentialId = (name: string) => fragment(`credential ${name}`);
export const headerId = (name: string) => fragment(`header ${name}`);

/** A parameter of a request, all of which are optional. */
export const parameterRow = ({
  name,
  in: place,
  description,
  schema,
}: Operation['parameters'][number]): Row => ({
  ...{ name, kind: [schema.type, place, 'optional'] },
  text: <Prose>{description}</Prose>,
});

/** Links, with a word between each and the next. */
function Links({
  names,
  idOf,
  between,
}: {
  names: readonly string[];
  idOf: (name: string) => string;
  between: string;
}) {
  return names.map((name, index) => (
    <Fragment key={name}>
      {index > 0 ? between : null}
      <a href={`#${idOf(name)}`}>
        <code>{name}</code>
      </a>
    </Fragment>
  ));
}

/** Who may call: whoever has one of the credentials, or anybody. */
function Callers({ security }: Pick<Operation, 'security'>) {
  return (
    <p>
      <strong>Who may call:</strong> {security.length === 0 ? 'anybody; no credential is looked at.' : null}
      {security.map((each, index) => (
        <Fragment key={Object.keys(each).join()}>
          {index > 0 ? ', or ' : 'whoever sends '}
          <Links between=" and " idOf={credentialId} names={Object.keys(each)} />
        </Fragment>
      ))}
    </p>
  );
}

/** The body of an answer, an example, and its headers. */
function AnswerContent({ content, headers }: Pick<Answer, 'content' | 'headers'>) {
  const body = content?.['application/json'];
  const [example] = Object.values(body?.examples ?? {});
  const names = Object.keys(headers);
  return (
    <>
      {body ? <Prose>{body.schema.description}</Prose> : null}
      {/* Of a body that is always the same, the example says all. */}
      {body && !(example && isConstant(body.schema)) ? <Rows rows={answeredRows(body.schema)} /> : null}
      {example ? <Example value={example.value} /> : null}
      {names.length > 0 ? (
        <p className={styles['aside']}>
          Headers: <Links between=", " idOf={headerId} names={names} />
        </p>
      ) : null}
    </>
  );
}

/** A status, when it comes, and what comes with it; or where that is described. */
export function AnswerView({ answer, level }: { answer: Answer; level: 'h3' | 'h5' }) {
  const { id, status, description, content, headers } = answer;
  const home = homeOf(answer);
  const isHere = home === id;
  return (
    <li className={isHere ? styles['answer'] : `${styles['answer']} ${styles['brief']}`}>
      <Heading id={id} level={level}>
        <b>{status}</b> {STATUS_CODES[status]}
      </Heading>
      <div className={styles['told']}>
        <Prose>{description}</Prose>{' '}
        {isHere ? (
          <AnswerContent content={content} headers={headers} />
        ) : (
          <p className={styles['aside']}>
            <a href={`#${home}`}>
              In full<span className="visually-hidden">: {status}</span>
            </a>
          </p>
        )}
      </div>
    </li>
  );
}

/** One operation: who may call it, how, with what, and all that it answers. */
export function OperationView({ operation, origin }: { operation: Operation; origin: string }) {
  const { id, kind, method, path, summary, description, security, requestBody, answers } = operation;
  const parameters = operation.parameters.filter(
    ({ name }) => !commonParameters.some((common) => common.name === name),
  );
  const body = requestBody?.content['application/json'].schema;
  return (
    <article aria-labelledby={id} className={styles['operation']}>
      <Heading id={id} level="h3">
        {summary}
      </Heading>
      <p className={styles['address']}>
        <code>
          <b>{method}</b> {path}
        </code>
      </p>
      <Prose>{description}</Prose>
      <Callers security={security} />
      {kind === 'path' ? <Command title="Call it">{curl(origin, operation)}</Command> : null}
      {body || parameters.length > 0 ? (
        <>
          <h4>Request</h4>
          <Prose>{requestBody?.description}</Prose>
          <Prose>{body?.description}</Prose>
          <Rows rows={[...parameters.map(parameterRow), ...(body ? sentRows(body) : [])]} />
        </>
      ) : null}
      <h4>Answers</h4>
      <ol className={styles['answers']}>
        {answers.map((answer) => (
          <AnswerView key={answer.id} answer={answer} level="h5" />
        ))}
      </ol>
    </article>
  );
}
