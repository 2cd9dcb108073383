"""The members of a family as the rules see them, whether imported or read from source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Signature

from conformance.signatures.findings import Place


@dataclass(frozen=True, slots=True)
class Method:
    """A verb of a class as its callers see it.

    `signature` is without `self`; None where the verb is no method, or where source does not
    tell. `owner` is the dotted name of the class that defines it. A stub only raises
    `NotImplementedError`. It is `inherited` where the root, or another member of the family,
    has the same one and answers for it.
    """

    signature: Signature | None
    owner: str
    place: Place | None = None
    problem: str = ""
    is_stub: bool = False
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class Member:
    """One class of a family. A verb has several methods where a condition chooses."""

    dotted: str
    methods: Mapping[str, tuple[Method, ...]]
    place: Place | None = None
    is_abstract: bool = False

    @property
    def name(self) -> str:
        return self.dotted.rpartition(".")[2]
