import { createMcpHandler, hostHeaderValidationResponse, McpServer } from '@modelcontextprotocol/server';
import { environment } from '#lib/base/env';
import { mcp } from './resource';

/**
 * POST /mcp/v1: an MCP server with one tool. A client needs an access token with the scope `profile`.
 *
 * npm install --save-prod @modelcontextprotocol/server@2.4.0
 */
export const POST = mcp.guard((request, { userId }) => {
  // Rejects a page that reaches the server under another name (DNS rebinding).
  const { hostname } = new URL(environment().PUBLIC_ORIGIN ?? request.url);
  const rejected = hostHeaderValidationResponse(request, [hostname]);
  if (rejected) return rejected;
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'identity-link', version: '1.0.0' });
    server.registerTool('whoami', { description: 'Returns the internal id of the user' }, () => ({
      content: [{ type: 'text', text: userId }],
    }));
    return server;
  });
  return handler.fetch(request);
});

// The library responds to these with a 405, which a page of another origin can read.
export { POST as DELETE, POST as GET };
export const { OPTIONS } = mcp;
