import { Hono } from 'hono';
import type { Instance } from './instance/instance';
import { CLERK_JS_PATH, CLERK_UI_PATH } from './variables';

/** Pages of the account portal, by path, with the component of Clerk that each page shows. */
const PAGES = {
  'sign-in': 'SignIn',
  'sign-up': 'SignUp',
  user: 'UserProfile',
  organization: 'OrganizationProfile',
  'create-organization': 'CreateOrganization',
  'oauth-consent': 'OAuthConsent',
  waitlist: 'Waitlist',
} as const;

/** Prevents clickjacking: a page of another origin cannot show these pages in a frame (RFC 9700, 4.16). */
const HEADERS = { 'content-security-policy': "frame-ancestors 'none'" };

/**
 * Serves the account portal. Clerk hosts these pages for applications that have no own pages for sign-in and sign-up. After a
 * sign-in, the browser returns to the page in the query parameter `redirect_url`, but never to a page of another machine.
 */
export function portal(instance: Instance): Hono {
  const app = new Hono().get('/', (context) => context.redirect('/user'));
  for (const [path, component] of Object.entries(PAGES)) {
    app.get(`/${path}/*`, ({ req, html }) =>
      html(page(instance, new URL(req.url).origin, path, component), 200, HEADERS),
    );
  }
  return app;
}

function page({ publishableKey }: Instance, origin: string, path: string, component: string): string {
  const title = component.replace(/(?<=[a-z])(?=[A-Z])/g, ' ');
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>${title}</title>
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <link rel="icon" href="data:," />
    <style>body { display: grid; min-height: 100dvh; margin: 0; place-items: center; background: #f7f7f8; }</style>
  </head>
  <body>
    <main id="component"></main>
    <script src="${CLERK_UI_PATH}"></script>
    <script src="${CLERK_JS_PATH}" data-clerk-publishable-key="${publishableKey.text}" data-clerk-proxy-url="${origin}"></script>
    <script type="module">
      const loopback = /^https?:\\/\\/(?:(?:[\\w.-]+\\.)?localhost|127\\.0\\.0\\.1|\\[::1\\])(?::\\d+)?$/;
      // The steps of a component share a page. A component that reloads between them loses the session that it has just started.
      const go = (change) => (to) => {
        const { href, origin, pathname } = new URL(to, location.href);
        if (origin === location.origin && pathname.split('/')[1] === '${path}') history[change](null, '', href);
        else location.assign(href);
      };
      await Clerk.load({
        routerPush: go('pushState'),
        routerReplace: go('replaceState'),
        ui: { ClerkUI: window.__internal_ClerkUICtor },
        signInUrl: '/sign-in',
        signUpUrl: '/sign-up',
        afterSignOutUrl: '/sign-in',
        allowedRedirectOrigins: [loopback],
        telemetry: false,
      });
      if (!Clerk.user && !/^(sign-|waitlist)/.test('${path}')) location.assign('/sign-in?' + new URLSearchParams({ redirect_url: location.href }));
      else
        Clerk.mount${component}(document.querySelector('#component'), {
          routing: 'path',
          path: '/${path}',
          fallbackRedirectUrl: '/user',
        });
    </script>
  </body>
</html>
`;
}
