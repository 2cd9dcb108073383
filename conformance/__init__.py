"""A conformance suite for the pools that hold an LLM engine's KV cache.

`Pool`, `Family` and `Known` are what a downstream `conftest.py` declares; the checks are
in `conformance.suite`. Importing this package imports neither torch nor hypothesis.
"""

from conformance.pool import Family, Known, Pool

__all__ = ["Family", "Known", "Pool"]
__version__ = "0.1.0"
