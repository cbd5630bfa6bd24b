import { withIdentityLink } from './lib/identity-link/middleware';

export default withIdentityLink();
export const config = { matcher: '/((?!_next/).*)' };
