'use client';

import { useEffect, useState } from 'react';
import { createPortal } from 'react-dom';
import { CopyButton } from '../_ui/copy-button';

/** Adds a copy button to the caption of each command. Uses portals, because the commands are static HTML. */
export function CopyButtons() {
  const [commands, setCommands] = useState<readonly HTMLElement[]>([]);

  useEffect(() => setCommands([...document.querySelectorAll('figure')]), []);

  return commands.flatMap((command) => {
    const caption = command.querySelector('figcaption');
    const title = caption?.firstChild?.textContent ?? '';
    const text = command.querySelector('code')?.textContent ?? '';
    return caption
      ? createPortal(<CopyButton name={`command: ${title}`} value={text} />, caption, title)
      : [];
  });
}
