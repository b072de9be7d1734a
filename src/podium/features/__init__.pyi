from .definitions import FeatureDefinitions

__all__ = [
    "FeatureDefinitions",
]
