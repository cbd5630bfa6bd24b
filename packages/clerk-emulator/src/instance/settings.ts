import { z } from 'zod';

/** Settings that a Clerk instance has in its dashboard. */
export const Settings = z.object({
  /**
   * Active organization after a sign-in. `last`: that of the user's last session, and at the first sign-in the organization that
   * the user joined last. `none`: none, so that the user starts in the personal account. Default: `last`.
   */
  activeOrganization: z.enum(['last', 'none']).default('last'),
  /**
   * Permissions by role, such as `{ 'org:editor': ['org:posts:manage'] }`. The roles `org:admin` and `org:member` also have
   * their system permissions. Default: only these two roles.
   */
  roles: z
    .record(z.string().regex(/^org:\w+$/), z.array(z.string().regex(/^org:\w+:\w+$/)).readonly())
    .default({}),
  /** Whether several users can be signed in at the same time in a browser. Default: false. */
  multiSession: z.boolean().default(false),
  /** Whether users can choose a user name, in addition to their e-mail address. Default: false. */
  usernames: z.boolean().default(false),
});

export type Settings = z.output<typeof Settings>;
