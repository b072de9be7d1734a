"""File formats, one file for each; `podium.data.FORMATS` has them by name."""
