"""Real search engines for tests: fetched by `make engines`, started on the loopback interface."""
