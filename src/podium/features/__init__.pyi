from .definitions_file import read_definitions

__all__ = ["read_definitions"]
