import type { ReactNode } from 'react';
import styles from './docs.module.css';
import { fragment, type Schema } from './document';

/** A text of the document: paragraphs, in which what stands between backticks is code. */
export function Prose({ children = '' }: { children?: string | undefined }) {
  const paragraphs = children.split('\n\n').filter(Boolean);
  return paragraphs.map((paragraph) => (
    <p key={paragraph}>
      {paragraph
        .split(/(`[^`]+`)/)
        .map((piece) => (piece.startsWith('`') ? <code key={piece}>{piece.slice(1, -1)}</code> : piece))}
    </p>
  ));
}

interface HeadingProps {
  readonly level: 'h2' | 'h3' | 'h5';
  readonly id: string;
  readonly children: ReactNode;
}

/** A heading that leads to itself, so that its address can be had by mouse and by keyboard. */
export function Heading({ level: Level, id, children }: HeadingProps) {
  return (
    <Level className={styles['heading']} id={id}>
      <a href={`#${id}`}>{children}</a>
    </Level>
  );
}

/** A command for a shell; a click selects it as it stands. */
export function Command({ title, children }: { title: string; children: string }) {
  return (
    <figure className={styles['command']}>
      <figcaption>{title}</figcaption>
      <pre>
        <code>{children}</code>
      </pre>
    </figure>
  );
}

/** Up to this length a value stands on one line. */
const ONE_LINE = 64;

/** A value as JSON. */
export function Example({ value }: { value: unknown }) {
  const line = JSON.stringify(value);
  return (
    <pre className={styles['example']}>
      <code>{line.length <= ONE_LINE ? line : JSON.stringify(value, null, 2)}</code>
    </pre>
  );
}

/** One thing of many: its name, in few words of what kind it is, and what is to be said of it. */
export interface Row {
  /** Where it can be linked. */
  readonly id?: string;
  readonly name: string;
  readonly kind: readonly (string | undefined)[];
  readonly text: ReactNode;
}

/** A list that is a table where there is room for one. */
export function Rows({ rows }: { rows: readonly Row[] }) {
  if (rows.length === 0) return null;
  return (
    <dl className={styles['rows']}>
      {rows.map(({ id, name, kind, text }) => (
        <div key={name} id={id}>
          <dt>
            <code>{name}</code>
            <span>{kind.filter(Boolean).join(' · ')}</span>
          </dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

const typeOf = ({ type, anyOf }: Schema): string => type ?? (anyOf.length > 0 ? 'object' : 'any JSON');

/** How long a text may be. */
export function lengthOf({ minLength: least, maxLength: most }: Schema): string | undefined {
  if (least === undefined) return most === undefined ? undefined : `at most ${most} characters`;
  return most === undefined ? `at least ${least} characters` : `${least} to ${most} characters`;
}

function Choice({ word, texts }: { word: string; texts: readonly string[] }) {
  if (texts.length === 0) return null;
  return (
    <ul aria-label={word} className={styles['choice']}>
      {texts.map((text, index) => (
        <li key={text}>
          {index === 0 ? word : 'or'} <code>{text}</code>
        </li>
      ))}
    </ul>
  );
}

/** What a value must be, other than its type and length; it may have several forms. */
export function Limits({ forms }: { forms: readonly Schema[] }) {
  const constants = forms.flatMap((form) => (form.const === undefined ? [] : [JSON.stringify(form.const)]));
  const choices = forms.flatMap((form) => form.enum.map((each) => JSON.stringify(each)));
  return (
    <>
      <Choice texts={constants} word="always" />
      <Choice texts={choices} word="one of" />
      <Choice texts={forms.flatMap(({ pattern }) => pattern ?? [])} word="matches" />
    </>
  );
}

export const valueId = (name: string) => fragment(`value ${name}`);

/** What is sent, field by field, in full. */
export function sentRows(schema: Schema): Row[] {
  return fieldsOf(schema).map(({ name, field, isRequired }) => ({
    name,
    kind: [typeOf(field), isRequired ? 'required' : 'optional', lengthOf(field)],
    text: (
      <>
        <Prose>{field.description}</Prose>
        <Limits forms={[field]} />
      </>
    ),
  }));
}

/** What is answered, field by field: a value that has a name is described among the values. */
export function answeredRows(schema: Schema): Row[] {
  return fieldsOf(schema).map(({ name, field, isRequired }) => ({
    name,
    kind: [typeOf(field), isRequired ? undefined : 'may be missing'],
    text: field.refersTo ? (
      <a href={`#${valueId(field.refersTo)}`}>{field.refersTo}</a>
    ) : (
      <>
        <Prose>{field.description}</Prose>
        <Limits forms={[field]} />
      </>
    ),
  }));
}

/** True if every such body is the same. */
export const isConstant = (schema: Schema): boolean =>
  fieldsOf(schema).every(({ field }) => field.const !== undefined);

interface Field {
  readonly name: string;
  readonly field: Schema;
  readonly isRequired: boolean;
}

/** The fields of a body; those within another by both names: `errors.database`. */
function fieldsOf({ properties = {}, required, anyOf }: Schema, within = ''): Field[] {
  const own = Object.entries(properties).flatMap(([key, field]) => {
    const name = `${within}${key}`;
    return [{ name, field, isRequired: required.includes(key) }, ...fieldsOf(field, `${name}.`)];
  });
  return [
    ...own,
    ...anyOf.flatMap((one) => fieldsOf(one, within).map((field) => ({ ...field, isRequired: false }))),
  ];
}
