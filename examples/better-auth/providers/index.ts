import type { Provider } from '#lib/providers';
import { betterAuthSessions } from './better-auth/sessions';

export const providers: readonly Provider[] = [betterAuthSessions];
