"""The index in memory that the local stores rank with."""
