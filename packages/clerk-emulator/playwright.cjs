// Playwright loads this module with `require` in an application that uses CommonJS, so the module is CommonJS.
let source;

/** Compiles the TypeScript source on the first call. */
function load() {
  source ??= import('tsx/esm/api').then(({ tsImport }) =>
    tsImport('./src/playwright.ts', { parentURL: __filename, tsconfig: false }),
  );
  return source;
}

exports.signIn = async (...parameters) => (await load()).signIn(...parameters);

exports.fixtures = {
  signedInAs: async ({ context, baseURL }, use) =>
    (await load()).fixtures.signedInAs({ context, baseURL }, use),
};
