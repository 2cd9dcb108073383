"""A family read from source, with the calls of its verbs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from conformance.signatures.findings import ScanError
from conformance.signatures.members import Member, Method
from conformance.signatures.rules import Problem
from conformance.signatures.source.calls import Call, calls_in
from conformance.signatures.source.files import find_tree
from conformance.signatures.source.hierarchy import Hierarchy
from conformance.signatures.source.kinds import KindsOf
from conformance.signatures.source.methods import Methods
from conformance.signatures.source.modules import Modules
from conformance.signatures.source.owners import Owners, owners_of
from conformance.signatures.source.receivers import Receivers
from conformance.signatures.source.resolve import Resolver
from conformance.signatures.source.scopes import SourceClass


@dataclass(slots=True, eq=False)
class SourceFamily:
    """The root, the classes under it, and every call of `verbs`."""

    modules: Modules
    hierarchy: Hierarchy
    methods: Methods
    verbs: tuple[str, ...]
    root: Member
    calls: list[Call]
    _owners: dict[SourceClass, Owners] = field(default_factory=dict)

    @classmethod
    def read(cls, root: str, places: Sequence[str], verbs: Sequence[str]) -> SourceFamily:
        """The family of `root`, `module:Class`, in `places`: paths or package names.

        Raises `ScanError`.
        """
        module, colon, name = root.partition(":")
        if not colon or not all(p.isidentifier() for p in (*module.split("."), *name.split("."))):
            raise ScanError(
                f"root {root!r} must be module:Class, e.g. myengine.memory.pool:KVCache"
            )
        modules = Modules([find_tree(place, module) for place in places])
        resolver = Resolver(modules)
        modules.packages.add(module.partition(".")[0])
        if not modules.exists(module):
            modules.anchors += _anchor_of(module)
        roots = resolver.class_at(f"{module}.{name}")
        if not roots:
            raise ScanError(_why_no_root(root, module, name, modules))
        hierarchy = Hierarchy.under(modules, resolver, roots)
        methods = Methods(hierarchy)
        member = methods.member(roots[0], verbs)
        if missing := [verb for verb in verbs[:2] if verb not in member.methods]:
            raise ScanError(f"root {root} has no method {missing[0]!r}")
        kinds = KindsOf(modules, resolver, hierarchy)
        receivers = Receivers(resolver, methods, kinds)
        parsed = [m for file in modules.mentioning(verbs) if (m := modules.parse(file))]
        calls = [call for m in parsed for call in calls_in(m, verbs, receivers)]
        return cls(modules, hierarchy, methods, tuple(verbs), member, calls)

    def member(self, cls: SourceClass) -> Member:
        return self.methods.member(cls, self.verbs)

    def owners(self, cls: SourceClass) -> Owners:
        """The pools that alone hold `cls`; nobody where others do."""
        if cls not in self._owners:
            self._owners[cls] = owners_of(cls, self.modules, self.hierarchy)
        return self._owners[cls]

    def reaching(self, cls: SourceClass, verb: str, method: Method) -> list[Call]:
        """The calls that may run `method`, which `cls` has."""
        calls = [call for call in self.calls if call.verb == verb]
        return [call for call in calls if self.reaches(call, cls, method)]

    def reaches(self, call: Call, cls: SourceClass, method: Method) -> bool:
        """Whether `call` may run `method`, which `cls` has. One whose receiver cannot be
        decided counts where the root would accept it: others are aimed at something else."""
        owners, receiver = self.owners(cls), call.receiver
        if method.owner in receiver.excluded:
            return False
        if not owners.classes:
            if receiver.owners is None:
                return self.is_legal(call)
            return method.owner in receiver.owners
        is_owner = call.caller in owners.classes
        if receiver.owners is None:
            exposed = receiver.member in owners.attributes and self.is_legal(call)
            return is_owner or exposed
        if method.owner in receiver.owners:
            return receiver.is_sure or is_owner
        # The class must be behind some attribute of its owner, whatever is said of these.
        is_open = is_owner and not receiver.is_sure and bool(receiver.attribute)
        return is_open and not any(
            other.caller in owners.classes and method.owner in (other.receiver.owners or ())
            for other in self.calls
        )

    def is_legal(self, call: Call) -> bool:
        """Whether the call binds on the root."""
        signatures = [m.signature for m in self.root.methods.get(call.verb, ())]
        return any(s is not None and not call.why_unbound(s) for s in signatures)


def meets(call: Call, problem: Problem) -> bool:
    """Whether `call` runs into `problem`."""
    if problem.keyword and call.passes(problem.keyword):
        return True
    if problem.position is not None and call.positional is not None:
        return call.positional > problem.position
    return not problem.keyword


def _anchor_of(module: str) -> list[Path]:
    """Where an installed module can be imported from, if it is."""
    try:
        return [find_tree(module, module).anchor]
    except ScanError:
        return []


def _why_no_root(root: str, module: str, name: str, modules: Modules) -> str:
    loaded = modules.load(module)
    if loaded is not None:
        return f"root {root}: {loaded.file.path} has no class {name}"
    for path, error in modules.unreadable.items():
        if path.stem == module.rpartition(".")[2]:
            return f"root {root}: {path} cannot be read: {error}"
    below = ", ".join(map(str, modules.anchors))
    return f"root {root}: there is no module {module} below {below}"
