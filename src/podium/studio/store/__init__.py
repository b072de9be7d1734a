"""The database: tables, connections, migrations, enums and tokens."""
