"""Comparing systems: tests, intervals, the coherence of verdicts, and reports."""
