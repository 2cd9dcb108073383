"""A conformance suite for the pools that hold an LLM engine's KV cache.

`Pool`, `Allocator`, `HostTier`, `Family` and `Known` are what a downstream `conftest.py`
declares; the checks are in `conformance.suite`. Importing this package imports neither torch
nor hypothesis.
"""

from conformance.allocator import Allocator
from conformance.host_tier import HostTier
from conformance.known import Known
from conformance.pool import Family, Pool

__all__ = ["Allocator", "Family", "HostTier", "Known", "Pool"]
__version__ = "0.1.0"
