"""Accounts, members of projects, OpenID, and the audit trail."""
