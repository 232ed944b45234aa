"""The parts of the demo: stores, model, stand-in, checks and what is printed."""
