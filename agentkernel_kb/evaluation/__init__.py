"""How well questions find their knowledge base, and what is found: a baseline router, measures, labelled questions, a lint."""
