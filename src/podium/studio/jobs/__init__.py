"""Work that takes longer than a request: a queue in the database and its worker."""
