import type { Registration } from './core/register';
import { link } from './link';

export { outcomeOf } from './core/register';
export const { register } = link;

/** Links a user like `register`. */
export const registerByIdentityProviderUserId = (identityProviderUserId: string): Promise<Registration> =>
  register('user', identityProviderUserId);
