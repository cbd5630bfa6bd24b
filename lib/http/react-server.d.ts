/** React's decoder of server action arguments. The copy in Next.js has no types. */
declare module 'next/dist/compiled/react-server-dom-turbopack/server.node' {
  export function createTemporaryReferenceSet(): WeakMap<object, string>;
  export function decodeReply(
    body: string | FormData,
    serverManifest: object,
    options: { readonly temporaryReferences: WeakMap<object, string> },
  ): PromiseLike<unknown>;
}
