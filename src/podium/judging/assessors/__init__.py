"""Assessors that are programs: simulated people, and models behind an endpoint."""
