"""The project's figures, each from one command: ``python -m benchmarks.NAME [--quick]``."""
