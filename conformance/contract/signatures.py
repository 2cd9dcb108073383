"""The clauses on the signatures of a family's classes."""

from __future__ import annotations

from conformance.contract.clause import clause, strict

CLAUSES = (
    clause(
        "override_accepts_every_keyword",
        "signatures",
        "An override accepts every optional keyword that the root of its family accepts.",
        "sglang 25828; sglang PRs 27645, 27229, 27802, 29146, 36730",
    ),
    clause(
        "override_binds_by_position",
        "signatures",
        "Every positional call that is legal on the root is legal on the override.",
        "sglang 25828 (substitutability: Liskov and Wing, 1994)",
    ),
    clause(
        "override_requires_nothing_more",
        "signatures",
        "An override requires no parameter that the root does not require.",
        "sglang 25828 (substitutability: Liskov and Wing, 1994)",
    ),
    clause(
        "pair_accepts_the_same_keywords",
        "signatures",
        "An optional keyword that a class adds to one half of the pair is on the other half.",
        "sglang PR 36730 (req_pool_index)",
    ),
    strict(
        "override_keeps_names",
        "signatures",
        "The required parameters of an override can be passed by the root's names.",
        "sglang 25828 (harmless while callers pass them by position)",
    ),
    strict(
        "override_keeps_defaults",
        "signatures",
        "An optional parameter of an override has the root's default.",
        "substitutability: Liskov and Wing, 1994",
    ),
    clause(
        "every_call_binds",
        "signatures",
        "Every call of a verb binds on the methods that it may reach.",
        "sglang 25828 (a caller passes what the parent does not accept)",
        "source",
    ),
    strict(
        "accepted_parameters_are_forwarded",
        "signatures",
        "An override that calls its parent hands on each optional parameter the parent uses.",
        "sglang PR 27645 (mamba_indices accepted, and lost on the way to super())",
        "source",
    ),
    clause(
        "stubs_are_overridden",
        "signatures",
        "A concrete class overrides the verbs that its root only declares.",
        "sglang 24042, 33385, 36591",
        "source",
    ),
    clause(
        "every_subclass_is_covered",
        "signatures",
        "Every concrete subclass of a family's root has a Pool, or an exemption with a reason.",
        "sglang PRs 27229, 27802, 29146 (fixed one class at a time)",
    ),
)
