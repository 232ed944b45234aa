"""The parts of the router: semantic map, tool table, one guarded call, limits, failures, events.

`KnowledgeBuilder` is its face.
"""
