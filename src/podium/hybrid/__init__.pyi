from .fusion import Fusion

__all__ = ["Fusion"]
