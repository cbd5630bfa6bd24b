import type { Metadata } from 'next';
import { findProfile } from '#lib/tables/profiles';
import { getActor, requireUser } from '#lib/user';

export const metadata: Metadata = { title: 'Profile' };

/** Shows the stored profile of the user, and the actor of an impersonated session. */
export default async function ProfilePage() {
  const { userId } = await requireUser();
  const [profile, actor] = await Promise.all([findProfile(userId), getActor()]);
  const name = [profile?.firstName, profile?.lastName].filter(Boolean).join(' ');
  return (
    <div className="shell">
      <h1>{name || 'Profile'}</h1>
      {actor && <p>Shown to {actor.id}</p>}
      <p>{profile ? profile.email : 'Your profile is not here yet.'}</p>
    </div>
  );
}
