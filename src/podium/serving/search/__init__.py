"""Searches that are reranked: an engine's candidates in the order of a model."""
