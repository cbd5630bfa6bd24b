import type { User } from './data';

/** Returns true unless the user has added the address and not verified it yet. */
export const isVerified = ({ verification }: User['emails'][number]): boolean =>
  verification?.status !== 'unverified';
