"""The steps by which a database gets its present tables."""
