/** React's decoder of server action arguments. Next.js contains it without types. */
declare module 'next/dist/compiled/react-server-dom-turbopack/server.node' {
  export function createTemporaryReferenceSet(): WeakMap<object, string>;
  export function decodeReply(
    body: string | FormData,
    serverManifest: object,
    options: { readonly temporaryReferences: WeakMap<object, string> },
  ): PromiseLike<unknown>;
}
