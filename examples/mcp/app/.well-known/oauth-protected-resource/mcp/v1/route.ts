import { mcp } from '../../../../mcp/v1/resource';

export const { GET, OPTIONS } = mcp.metadata;
