"""What serves an agent's tools to others over a protocol: MCP."""
