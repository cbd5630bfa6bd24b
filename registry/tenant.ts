import { headers } from 'next/headers';
import { cache } from 'react';
import { resolveTenant } from './guard-tenant';
import { readVerdict } from './idp/verdict';
import { getUser } from './user';

/** Returns the context of the user in the active organization, or undefined without one. Links a new organization. */
export const getTenant = cache(async () => resolveTenant(await readVerdict(await headers()), getUser()));
