'use client';

import { useActionState } from 'react';
import type { ActionResult } from '#lib/guard-action';

/** A form with one text field. It works without JavaScript, and before JavaScript has loaded. */
export function ProjectForm({
  action,
  label,
  name,
  button,
  projectId,
}: {
  action: (previous: unknown, form: FormData) => Promise<ActionResult<unknown>>;
  label: string;
  name: string;
  button: string;
  projectId?: string;
}) {
  const [result, submit, isPending] = useActionState(action, undefined);
  return (
    <form action={submit} className="actions">
      {projectId === undefined ? null : <input type="hidden" name="projectId" value={projectId} />}
      <label>
        {label} <input name={name} required maxLength={255} />
      </label>
      <button className="button" type="submit" aria-disabled={isPending}>
        {button}
      </button>
      <p role="status">{result === undefined ? null : result.ok ? 'Saved.' : result.message}</p>
    </form>
  );
}
