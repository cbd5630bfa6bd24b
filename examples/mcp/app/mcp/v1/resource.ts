import { protectedResource } from '#lib/protected-resource';

/** The MCP server as an OAuth protected resource. With `offline_access`, a client stays connected after its token expires. */
export const mcp = protectedResource('/mcp/v1', { scopes: ['profile'], optionalScopes: ['offline_access'] });
