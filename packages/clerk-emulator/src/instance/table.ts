import { z } from 'zod';
import * as rows from './data';
import { Delivery } from './webhook-attempt';

/** Rows by id, in the order of insertion. Rows are immutable: a change replaces the row. */
export type Table<Row extends { readonly id: string }> = ReturnType<typeof openTable<Row>>;

/** Returns a table with the given rows. It calls `changed` after each change. */
function openTable<Row extends { readonly id: string }>(rows: readonly Row[], changed: () => void) {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const all = () => [...byId.values()];
  return {
    get: (id: string): Row | undefined => byId.get(id),
    put<NewRow extends Row>(row: NewRow): NewRow {
      byId.set(row.id, row);
      changed();
      return row;
    },
    delete(id: string): void {
      if (byId.delete(id)) changed();
    },
    clear() {
      byId.clear();
      changed();
    },
    all,
    size: () => byId.size,
    find(matches: (row: Row) => boolean): Row | undefined {
      for (const row of byId.values()) if (matches(row)) return row;
      return undefined;
    },
    /** Returns the rows that have a value in a field. */
    where: <Name extends keyof Row>(name: Name, value: Row[Name]) =>
      all().filter((row) => row[name] === value),
    /** `JSON.stringify` calls this function. */
    toJSON: all,
  };
}

/** Returns the schema of a data file. Its tables call `changed` after each change. */
export function dataSchema(changed: () => void) {
  const table = <Row extends z.ZodType<{ readonly id: string }>>(row: Row) =>
    z
      .array(row)
      .default([])
      .transform((all): Table<Readonly<z.output<Row>>> => openTable(all, changed));
  return z.object({
    version: z.literal(3),
    signingKeyPem: z.string(),
    users: table(rows.User),
    clients: table(rows.Client),
    sessions: table(rows.Session),
    signIns: table(rows.SignIn),
    signUps: table(rows.SignUp),
    tickets: table(z.union([rows.SignInToken, rows.Invitation])),
    waitlistEntries: table(rows.WaitlistEntry),
    organizations: table(rows.Organization),
    memberships: table(rows.Membership),
    organizationInvitations: table(rows.OrganizationInvitation),
    organizationDomains: table(rows.OrganizationDomain),
    oauthClients: table(rows.OAuthClient),
    oauthGrants: table(rows.OAuthGrant),
    images: table(rows.Image),
    tokenTemplates: table(rows.TokenTemplateRow),
    mails: table(rows.Mail),
    deliveries: table(Delivery),
  });
}

export type Data = z.output<ReturnType<typeof dataSchema>>;
