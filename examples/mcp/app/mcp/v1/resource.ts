import { protectedResource } from '#lib/protected-resource';

/** The MCP server as an OAuth protected resource. It does not need `offline_access`: clients that keep a refresh token add it. */
export const mcp = protectedResource('/mcp/v1', { scopes: ['profile'] });
