import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { guardOAuth } from '#lib/guard-oauth';

/** POST /mcp/v1: an MCP server with one tool. A client needs an access token with the scope `profile`. */
export const POST = guardOAuth(
  (request, { userId }) => {
    const handler = createMcpHandler(() => {
      const server = new McpServer({ name: 'identity-link', version: '1.0.0' });
      server.registerTool('whoami', { description: 'Returns the internal id of the user' }, () => ({
        content: [{ type: 'text', text: userId }],
      }));
      return server;
    });
    return handler.fetch(request);
  },
  { scopes: ['profile'] },
);
