/** Takes the place of `nextLink` in a bundle for the browser or the edge runtime. */
export function nextLink(): never {
  throw new Error(
    "clerk-identity-link needs the Node.js runtime: remove `runtime = 'edge'`, or the import from a client component.",
  );
}
