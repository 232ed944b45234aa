"""The commands, one module each: `register(app)` adds it, or a group of them."""
