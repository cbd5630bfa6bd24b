import { createRequire } from 'node:module';
import * as z from 'zod/mini';

/** Version of the Backend API that the SDK requests. The SDK does not export it. */
export const API_VERSION = '2026-05-12';

const packageJson: unknown = createRequire(import.meta.url)('@clerk/backend/package.json');
export const SDK_VERSION = z.object({ version: z.string() }).parse(packageJson).version;
