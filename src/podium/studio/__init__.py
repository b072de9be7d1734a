"""The judging web application: thin handlers over `podium.judging`, PostgreSQL or SQLite below.

`podium studio` runs it; `podium.studio.client` talks to it from Python.
"""
