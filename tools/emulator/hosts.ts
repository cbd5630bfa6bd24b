import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** A small application with one of Clerk's SDKs. Its page `/` shows the id and the email address of the user as JSON. */
export interface Host {
  readonly sdk: string;
  /** Packages that npm installs, with exact versions. */
  readonly packages: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
  /** Starts the application on the port in the variable `PORT`. */
  readonly command: readonly string[];
  /** True if the page loads the browser SDK and writes the user id that this SDK returns into `#browser`. */
  readonly hasBrowserSdk: boolean;
}

const Package = z.object({ dependencies: z.record(z.string(), z.string()) });
const { dependencies } = Package.parse(JSON.parse(readFileSync('package.json', 'utf8')));
const pinned = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, dependencies[name] ?? '']));

const express: Host = {
  sdk: '@clerk/express',
  packages: { '@clerk/express': '2.1.70', express: '5.3.0' },
  files: {
    'server.mjs': `
import { clerkClient, clerkMiddleware, getAuth } from '@clerk/express';
import express from 'express';

const app = express();
app.use(clerkMiddleware());
app.get('/', async (request, response) => {
  const { userId } = getAuth(request);
  const user = userId ? await clerkClient.users.getUser(userId) : null;
  response.json({ userId, email: user?.primaryEmailAddress?.emailAddress ?? null });
});
app.listen(Number(process.env.PORT), '127.0.0.1');
`,
  },
  command: [process.execPath, 'server.mjs'],
  hasBrowserSdk: false,
};

const fastify: Host = {
  sdk: '@clerk/fastify',
  packages: { '@clerk/fastify': '3.1.79', fastify: '5.12.8' },
  files: {
    'server.mjs': `
import { clerkClient, clerkPlugin, getAuth } from '@clerk/fastify';
import fastify from 'fastify';

const app = fastify();
// The plugin reads the keys from the environment, but not the URLs of the Backend API and of the proxy.
app.register(clerkPlugin, { apiUrl: process.env.CLERK_API_URL, proxyUrl: process.env.CLERK_PROXY_URL });
app.get('/', async (request) => {
  const { userId } = getAuth(request);
  const user = userId ? await clerkClient.users.getUser(userId) : null;
  return { userId, email: user?.primaryEmailAddress?.emailAddress ?? null };
});
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
`,
  },
  command: [process.execPath, 'server.mjs'],
  hasBrowserSdk: false,
};

const nextjs: Host = {
  sdk: '@clerk/nextjs',
  packages: pinned(['@clerk/nextjs', 'next', 'react', 'react-dom']),
  files: {
    'proxy.js': `
import { clerkMiddleware } from '@clerk/nextjs/server';

export default clerkMiddleware();
export const config = { matcher: ['/((?!_next).*)'] };
`,
    'app/layout.jsx': `
import { ClerkProvider } from '@clerk/nextjs';

export default function Layout({ children }) {
  return <html lang="en"><body><ClerkProvider>{children}</ClerkProvider></body></html>;
}
`,
    'app/browser-user.jsx': `
'use client';
import { useUser } from '@clerk/nextjs';

export const BrowserUser = () => <p id="browser">{useUser().user?.id}</p>;
`,
    'app/page.jsx': `
import { auth, currentUser } from '@clerk/nextjs/server';
import { BrowserUser } from './browser-user';

export default async function Page() {
  const { userId } = await auth();
  const user = userId ? await currentUser() : null;
  const email = user?.primaryEmailAddress?.emailAddress ?? null;
  return <><pre>{JSON.stringify({ userId, email })}</pre><BrowserUser /></>;
}
`,
    'app/icon.svg': '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>',
  },
  command: [process.execPath, 'node_modules/next/dist/bin/next', 'dev'],
  hasBrowserSdk: true,
};

export const hosts: readonly Host[] = [express, fastify, nextjs];
