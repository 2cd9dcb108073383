"""What every property check of the suite shares: its Hypothesis settings and its data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st


def quiet(base: settings) -> settings:
    """`base` without what does not fit pools: a deadline, the health checks that a slow
    device trips, and the explain phase, whose random variations of a shrunk program may
    replace it by a larger one that took fewer draws."""
    slow = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture)
    return settings(
        base,
        deadline=None,
        phases=[phase for phase in base.phases if phase is not Phase.explain],
        suppress_health_check=[*base.suppress_health_check, *slow],
    )


def without_shrinking(base: settings) -> settings:
    """`base` for programs on a host tier: what failed is made small step by step there, since
    one run is slow and Hypothesis would try very many."""
    return settings(base, phases=[phase for phase in base.phases if phase is not Phase.shrink])


def for_each_tier_program(check: Callable[..., None]) -> Any:
    """As `for_each_program`, without Hypothesis's shrinking."""
    return without_shrinking(quiet(settings()))(given(data=st.data())(check))


def for_each_program(check: Callable[..., None]) -> Any:
    """Make `check(kv_case, data)` a Hypothesis test that inherits the active profile."""
    return quiet(settings())(given(data=st.data())(check))
