"""Comparing systems: tests, intervals, the coherence of results, and reports."""
