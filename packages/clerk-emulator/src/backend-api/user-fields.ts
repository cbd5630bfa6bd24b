import type { User } from '../instance/data';
import { textsOf } from '../instance/identifiers';
import type { Fields } from './lists';

/** The fields by which a list of users, or of rows that belong to users, is selected and sorted. */
export function userFields<Row>(userOf: (row: Row) => User): Fields<Row> {
  const fields: Fields<User> = {
    email_address: ({ emails }) => emails.map(({ value }) => value),
    phone_number: ({ phones }) => phones.map(({ value }) => value),
    web3_wallet: ({ wallets }) => wallets.map(({ value }) => value),
    web3wallet: ({ wallets }) => wallets.map(({ value }) => value),
    username: ({ username }) => [username],
    user_id: ({ id }) => [id],
    first_name: ({ firstName }) => [firstName],
    last_name: ({ lastName }) => [lastName],
    name: ({ firstName, lastName }) => [[firstName, lastName].filter(Boolean).join(' ')],
    query: textsOf,
    created_at: ({ createdAt }) => [createdAt],
    updated_at: ({ updatedAt }) => [updatedAt],
    last_sign_in_at: ({ lastSignInAt }) => [lastSignInAt],
    // The emulator records no activity but sign-ins.
    last_active_at: ({ lastSignInAt }) => [lastSignInAt],
  };
  return Object.fromEntries(
    Object.entries(fields).map(([name, read]) => [name, (row: Row) => read(userOf(row))]),
  );
}

/** The filters that lists of users and of memberships have in common. */
export const USER_FILTERS =
  'email_address phone_number username web3_wallet user_id query email_address_query phone_number_query ' +
  'username_query name_query last_active_at_before last_active_at_after created_at_before created_at_after';
