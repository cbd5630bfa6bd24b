/**
 * First segments of the paths of Clerk's APIs (https://github.com/clerk/openapi-specs). The Backend API has some of those of the
 * Frontend API. An operation under one of them that the emulator lacks gets a 501, and any other path a 404.
 */
const FRONTEND_API =
  'account_portal agents api_keys billing clear-site-data client dev_browser dev_tools enterprise_connections environment ' +
  'health me oauth_callback organizations proxy-health redirect saml tickets verify waitlist';
const BACKEND_API =
  'actor_tokens admin_portal_link_tokens agents allowlist_identifiers api_keys audit_logs aws_credentials beta_features billing ' +
  'blocklist_identifiers clients directories domains email_addresses enterprise_connections instance invitations jwks ' +
  'jwt_templates m2m_tokens machine_tokens machines oauth_applications organization_domains organization_invitations ' +
  'organization_memberships organization_permissions organization_roles organizations phone_numbers proxy_checks redirect_urls ' +
  'role_sets saml_connections scim_directories sessions sign_in_tokens sign_ups templates testing_tokens users ' +
  'waitlist_entries webhooks';
const SEGMENTS = { frontend: FRONTEND_API.split(' '), backend: BACKEND_API.split(' ') };

/** Returns true if a path, with or without `/v1`, belongs to an API of Clerk's. */
export const isClerkPath = (path: string, api: keyof typeof SEGMENTS): boolean =>
  SEGMENTS[api].includes(/^(?:\/v1)?\/([^/]+)/.exec(path)?.[1] ?? '');
