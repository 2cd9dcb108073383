"""The checks, as plain pytest functions: `from conformance.suite import *`."""

from conformance.suite.test_allocators import *  # noqa: F403
from conformance.suite.test_declarations import *  # noqa: F403
from conformance.suite.test_errors import *  # noqa: F403
from conformance.suite.test_host_tiers import *  # noqa: F403
from conformance.suite.test_orderings import *  # noqa: F403
from conformance.suite.test_reload import *  # noqa: F403
from conformance.suite.test_signatures import *  # noqa: F403
from conformance.suite.test_state import *  # noqa: F403
from conformance.suite.test_timing import *  # noqa: F403

__all__ = sorted(
    name for name in globals() if name.startswith("test_") and callable(globals()[name])
)
