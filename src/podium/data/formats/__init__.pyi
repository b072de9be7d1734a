from .by_name import FORMATS, Format, format_of

__all__ = ["FORMATS", "Format", "format_of"]
