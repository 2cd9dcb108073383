"""Programs: operations on one pool, as data that prints on one line and parses back.

    write r0 at 4..6 state 3; offload r0 as c0 state 3; overwrite; reload c0 at 9,8,12 state 5

Rows are token ids; `4..6` includes both ends, `none` is no rows. Steps that name rows run on
a pool alone; `extend r0 by 3` and `resume r0 from c0` leave the rows to an allocator; a host tier
copies while the program goes on: `back up r0; await backup of r0; load r0 at 8..11; use r0`.
Words at the end of offload and reload give the form of the id tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from conformance.step_text import Rows, codec, read_step, step


@dataclass(frozen=True, slots=True)
class Form:
    """How ids are handed to the pool: dtype, place, strides; and whether a state id is 0-dim."""

    dtype: Literal["int64", "int32", "float32"] = "int64"
    on_host: bool = False
    strided: bool = False
    scalar_state: bool = False

    def __str__(self) -> str:
        words: list[str] = [self.dtype] if self.dtype != "int64" else []
        words += [word for word, attribute in _FORM_FLAGS.items() if getattr(self, attribute)]
        return "".join(f" {word}" for word in words)


PLAIN = Form()
_FORM_FLAGS = {"host": "on_host", "strided": "strided", "scalar": "scalar_state"}


def _read_form(text: str) -> Form:
    words = text.split()
    return Form(
        "int32" if "int32" in words else "float32" if "float32" in words else "int64",
        on_host="host" in words,
        strided="strided" in words,
        scalar_state="scalar" in words,
    )


codec("form", r"(?: (?:int32|float32))?(?: (?:host|strided|scalar))*", str, _read_form)


@step("write {request} at {rows}{state}")
class Write:
    """A new request: bytes for its token i at `rows[i]`, and for its state row if it has one."""

    request: str
    rows: Rows
    state: int | None = None


@step("extend {request} by {tokens}", "extend {request} at {rows}")
class Extend:
    """More tokens for `request`, which is new if need be: at `rows`, or `tokens` rows that the
    allocator chooses. Decoding extends by one. A state is written anew."""

    request: str
    rows: Rows | None = None
    tokens: int = 0


@step("claim {request} at {rows}")
class Claim:
    """`request` names rows that are not its own, perhaps not even rows; nothing is written."""

    request: str
    rows: Rows


@step(
    "offload {request} as {copy}{state}{form}",
    "offload {request}[{start}:{stop}] as {copy}{state}{form}",
)
class Offload:
    """Copy to the host the tokens `start .. stop - 1` of `request` (all where stop is None)."""

    request: str
    copy: str
    state: int | None = None
    start: int = 0
    stop: int | None = None
    form: Form = PLAIN


@step("reload {copy} at {rows}{state}{form}")
class Reload:
    """Load `copy` into `rows` and into the state row `state`."""

    copy: str
    rows: Rows
    state: int | None = None
    form: Form = PLAIN


@step("retract {request} as {copy}")
class Retract:
    """Offload all of `request`, its state too, and free its rows."""

    request: str
    copy: str


@step("resume {request} from {copy}{state}", "resume {request} from {copy} at {rows}{state}")
class Resume:
    """`request` lives again: `copy` is reloaded at `rows`, or where the allocator says."""

    request: str
    copy: str
    rows: Rows | None = None
    state: int | None = None


@step("free {requests}", "free {requests}[{start}:]")
class Free:
    """In one call, the tokens of these requests from position `start` on are given up."""

    requests: tuple[str, ...]
    start: int = 0


@step("share {request}[:{tokens}] as {new}")
class Share:
    """`new` begins with the first `tokens` tokens of `request`: both own them."""

    request: str
    new: str
    tokens: int


@step("slide {request}[{start}:{end}]")
class Slide:
    """The window of `request` has left its tokens `start .. end - 1` behind."""

    request: str
    start: int
    end: int


@step("move {request}[{sources}] to [{targets}]")
class Move:
    """The tokens of `request` at positions `sources` are copied to its positions `targets`."""

    request: str
    sources: Rows
    targets: Rows


@step("copy state {source} to {target}")
class CopyState:
    """The state row `source` is copied to the state row `target`."""

    source: int
    target: int


@step("zero state {source}")
class ZeroState:
    """The state row `source` is zeroed."""

    source: int


@step("scribble {copy}")
class Scribble:
    """Overwrite the host memory of `copy`, which is of no use after this."""

    copy: str


@step("foreign {copy} of {tokens}")
class Foreign:
    """A copy of `tokens` tokens that was made by a pool of another geometry."""

    copy: str
    tokens: int


@step("back up {request}")
class BackUp:
    """Copies of the whole pages of `request`, its state too, to fresh host rows, are begun."""

    request: str


@step("load {request} at {rows}{state}")
class Load:
    """Copies of what was backed up of `request` into `rows`, where it lives from now on, are
    begun."""

    request: str
    rows: Rows
    state: int | None = None


Which = Literal["backup", "load"]
codec("which", "backup|load", str, str)


@step("await {which} of {request}")
class Await:
    """The host waits for the backup of `request`, or for its last load."""

    which: Which
    request: str


@step("poll {which} of {request}")
class Poll:
    """The host asks until the backup of `request`, or its last load, says that it is done."""

    which: Which
    request: str


@step("use {request}")
class Use:
    """The current stream waits for one layer of the load of `request` after the other, and
    reads each then."""

    request: str


@step("read {request}")
class Read:
    """The current stream reads the rows of `request` when it comes to that."""

    request: str


@step("drop {request}")
class Drop:
    """The host rows of `request` are given back. With copies in flight this may be refused."""

    request: str


Verb = Literal[
    "overwrite", "clear", "begin group", "end group", "compact", "overwrite ids", "close"
]
codec("verb", "|".join(get_args(Verb)), str, str)


@step("{verb}")
class Bare:
    """A step that is one verb and nothing else."""

    verb: Verb


OVERWRITE = Bare("overwrite")
"""Every row of every buffer gets new bytes that belong to no request."""
CLEAR = Bare("clear")
"""The allocator takes back everything that it handed out."""
BEGIN_GROUP, END_GROUP = Bare("begin group"), Bare("end group")
"""What is freed between these two becomes free at the second."""
COMPACT = Bare("compact")
"""A pool with virtual ids moves its rows and translates the ids anew."""
SCRIBBLE_IDS = Bare("overwrite ids")
"""The caller overwrites every tensor of ids that it got from the allocator or passed to it."""
CLOSE = Bare("close")
"""Nobody refers to the host tier any more, whatever is in flight. Nothing comes after this."""

codec("call", "(?:offload|reload|free|move|drop) .+", str, read_step)


@step("refuse {call}")
class Refuse:
    """An illegal call: it must raise, and nothing may change."""

    call: Offload | Reload | Free | Move | Drop


TierStep = BackUp | Load | Await | Poll | Use | Read | Drop
"""What only a host tier does."""

Step = (
    Write
    | Extend
    | Claim
    | Offload
    | Reload
    | Retract
    | Resume
    | Free
    | Share
    | Slide
    | Move
    | CopyState
    | ZeroState
    | Scribble
    | Foreign
    | TierStep
    | Bare
    | Refuse
)


@dataclass(frozen=True, slots=True)
class Program:
    """Steps in order. The pool begins with bytes of nobody in every row."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.steps))

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)


def parse_program(text: str) -> Program:
    """Read `str(program)` back. `ValueError` names the step that cannot be read."""
    return Program(tuple(read_step(word.strip()) for word in text.split(";") if word.strip()))
