"""Published tables and figures, and Podium's own, each one command."""
