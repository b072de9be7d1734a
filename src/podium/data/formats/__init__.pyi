from .by_name import FORMATS, Format

__all__ = ["FORMATS", "Format"]
