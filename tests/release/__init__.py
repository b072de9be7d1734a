"""What is checked before a release: locks, the wheel's files, advisories, and all long steps."""
