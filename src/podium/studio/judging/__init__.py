"""The judging service: leases, the log, query state, judging modes, and answers."""
