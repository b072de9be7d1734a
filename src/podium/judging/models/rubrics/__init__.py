"""The rubrics that come with Podium, as TOML files."""
