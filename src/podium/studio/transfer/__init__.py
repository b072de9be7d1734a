"""Imports and exports: files, search engines, and the sanitising of HTML."""
