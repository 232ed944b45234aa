"""`Neo4jManager`: a graph on a Neo4j server, asked and written in Cypher. It needs the extra `neo4j`."""

from agentkernel_kb.neo4j.manager import Neo4jManager

__all__ = ["Neo4jManager"]
