import { notFound, requireFound } from './api-error';
import type { Membership, Session, TokenTemplateRow, User } from './data';
import { isVerified } from './identifiers';
import { newRow } from './ids';
import type { Instance } from './instance';
import { publicMembershipResource, publicOrganizationResource } from './organization-resources';
import { publicUserResource } from './resources';
import { Settings, type SettingsInput, type TokenTemplate } from './settings';

/** Changes settings. Throws for an invalid one. Adds the token templates of the settings to those of the Backend API. */
export function changeSettings(instance: Instance, changes: SettingsInput): Settings {
  instance.settings = Settings.strict().parse({ ...instance.settings, ...changes });
  for (const template of instance.settings.tokenTemplates) putTokenTemplate(instance, template);
  return instance.settings;
}

/** Creates a token template, or replaces the one with its name. */
export function putTokenTemplate(instance: Instance, template: TokenTemplate): TokenTemplateRow {
  const { tokenTemplates } = instance.store;
  const { id, createdAt, updatedAt } = newRow(instance, 'jtmp');
  const existing = tokenTemplates.find(({ name }) => name === template.name);
  return tokenTemplates.put({ id, createdAt, ...existing, ...template, updatedAt });
}

/** Returns the template with a name. Throws a 404 if there is none, so that clerk-js does not repeat the request. */
export function requireTokenTemplate({ store }: Instance, name: string): TokenTemplateRow {
  const template = store.tokenTemplates.find((each) => each.name === name);
  return requireFound(template, `The JWT template ${name}`);
}

/** Returns claims of a template with the values of a session in the place of their shortcodes. */
export function fillClaims(
  instance: Instance,
  claims: Readonly<Record<string, unknown>>,
  session: Session,
  membership: Membership | undefined,
): Record<string, unknown> {
  if (Object.keys(claims).length === 0) return {};
  const user = instance.store.users.get(session.userId);
  if (user === undefined) throw notFound(`User ${session.userId}`);
  const organization = membership && instance.store.organizations.get(membership.organizationId);
  const facts = {
    user: userFacts(instance, user),
    org: organization && {
      ...publicOrganizationResource(instance, organization),
      role: membership.role,
    },
    org_membership: membership && publicMembershipResource(instance, membership),
    session: { id: session.id, actor: session.actor },
  };
  return Object.fromEntries(Object.entries(claims).map(([name, value]) => [name, fill(value, facts)]));
}

function userFacts(instance: Instance, user: User) {
  const { emails, phones, wallets, firstName, lastName } = user;
  const memberships = instance.store.memberships.where('userId', user.id);
  return {
    ...publicUserResource(user),
    full_name: [firstName, lastName].filter(Boolean).join(' ') || null,
    primary_email_address: emails[0]?.value,
    email_verified: emails[0] !== undefined && isVerified(emails[0]),
    primary_phone_number: phones[0]?.value,
    phone_number_verified: phones[0] !== undefined && isVerified(phones[0]),
    primary_web3_wallet: wallets[0]?.value,
    organizations: Object.fromEntries(memberships.map((each) => [each.organizationId, each.role])),
  };
}

/** Fills in the shortcodes of a value. A string that is one shortcode gets the type of its value. */
function fill(value: unknown, facts: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => fill(each, facts));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, fill(each, facts)]));
  if (typeof value !== 'string') return value;
  const only = /^\{\{([^{}]+)\}\}$/.exec(value)?.[1];
  if (only !== undefined) return evaluate(only, facts);
  return value.replace(/\{\{([^{}]+)\}\}/g, (_, expression: string) => {
    const found = evaluate(expression, facts) ?? '';
    return typeof found === 'string' ? found : JSON.stringify(found);
  });
}

/** Returns the first operand of an expression such as `user.public_metadata.plan || 'free'` that has a value, else the last one. */
function evaluate(expression: string, facts: unknown): unknown {
  const operands = expression.split('||').map((operand) => read(operand.trim(), facts));
  return operands.find(Boolean) ?? operands.at(-1) ?? null;
}

function read(operand: string, facts: unknown): unknown {
  const text = /^'(.*)'$/s.exec(operand)?.[1];
  if (text !== undefined) return text;
  if (/^(-?\d+(\.\d+)?|true|false|null)$/.test(operand)) return JSON.parse(operand);
  return operand
    .split('.')
    .reduce<unknown>((found, name) => new Map<string, unknown>(Object.entries(found ?? {})).get(name), facts);
}
