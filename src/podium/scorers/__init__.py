"""Fitted models as data: trees, weighted sums and networks, read from rankers and other libraries.

Exports, serving, explanations and verification work on this form and ask no ranker what it is.
"""
