import { writeRoutes } from '../lib/routing/app-routes';

/** `npm run routes`: writes lib/routing/routes.ts from the files in app/. */
writeRoutes();
