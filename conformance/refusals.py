"""Illegal calls: under which clause each must be refused, and what the error must name."""

from __future__ import annotations

from conformance.copies import LiveCopy
from conformance.geometry import Geometry
from conformance.pool import Pool
from conformance.programs import Move, Offload, Reload
from conformance.step_text import Rows

REFUSALS = (TypeError, ValueError, IndexError)


def why_illegal(
    call: Offload | Reload | Move,
    rows: Rows,
    copy: LiveCopy | None,
    pool: Pool,
    geometry: Geometry,
) -> tuple[str, str]:
    """The clause, and the value, of an illegal call with these token ids."""
    if not isinstance(call, Move) and call.form.dtype == "float32":
        return "wrong_dtype_is_refused", "float32"
    wrong = _wrong_row(rows, geometry)
    if isinstance(call, Move):
        return "illegal_move_is_refused", wrong[1] if wrong else ""
    if wrong is not None:
        return wrong
    if copy is not None and copy.saved is None:
        return "foreign_copy_is_refused", ""
    if copy is not None and copy.tokens != len(rows):
        return "wrong_length_is_refused", str(copy.tokens)
    if not pool.has_state:
        return "state_is_refused_not_dropped", "state"
    return "state_mismatch_is_refused", "state"


def _wrong_row(rows: Rows, geometry: Geometry) -> tuple[str, str] | None:
    for at, row in enumerate(rows):
        if row < 0:
            return "negative_ids_are_refused", str(row)
        if row < geometry.page_size:
            return "reserved_rows_are_refused", str(row)
        if row >= geometry.token_rows:
            return "out_of_range_ids_are_refused", str(row)
        if row in rows[:at]:
            return "duplicate_ids_are_refused", str(row)
    return None
