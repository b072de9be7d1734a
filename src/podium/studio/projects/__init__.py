"""Projects, changes to them, assignments and guidelines."""
