"""Signatures of every subclass against the root of its family, and the coverage gate."""

from __future__ import annotations

from conformance.signatures.family import ClassCase


def test_override_accepts_every_keyword(kv_class: ClassCase) -> None:
    kv_class.check()


def test_override_binds_by_position(kv_class: ClassCase) -> None:
    kv_class.check()


def test_override_requires_nothing_more(kv_class: ClassCase) -> None:
    kv_class.check()


def test_pair_accepts_the_same_keywords(kv_class: ClassCase) -> None:
    kv_class.check()


def test_override_keeps_names(kv_class: ClassCase) -> None:
    kv_class.check()


def test_override_keeps_defaults(kv_class: ClassCase) -> None:
    kv_class.check()


def test_every_call_binds(kv_class: ClassCase) -> None:
    kv_class.check()


def test_accepted_parameters_are_forwarded(kv_class: ClassCase) -> None:
    kv_class.check()


def test_stubs_are_overridden(kv_class: ClassCase) -> None:
    kv_class.check()


def test_every_subclass_is_covered(kv_class: ClassCase) -> None:
    kv_class.check()
