"""What a declaration claims: every tensor is accounted for, and what is lacking is refused."""

from __future__ import annotations

from conformance.case import Case
from conformance.claims import check_accounting, check_lacks


def test_every_tensor_is_accounted_for(kv_case: Case) -> None:
    check_accounting(kv_case)


def test_lacks_is_refused_first(kv_case: Case) -> None:
    check_lacks(kv_case)
