"""What every property check of the suite shares: its Hypothesis settings and its data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def for_each_program(check: Callable[..., None]) -> Any:
    """Make `check(kv_case, data)` a Hypothesis test.

    It inherits the active profile; only the deadline and the health checks that a slow
    device trips are switched off.
    """
    quiet = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture)
    base = settings()
    return settings(
        base, deadline=None, suppress_health_check=(*base.suppress_health_check, *quiet)
    )(given(data=st.data())(check))
