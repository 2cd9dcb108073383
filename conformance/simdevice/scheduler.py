"""Runs queued operations as late as the schedule says. Knows nothing of torch."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from conformance.simdevice.errors import DeviceAssert, SimError
from conformance.simdevice.queues import Follower, Mark, Op, Queue
from conformance.simdevice.schedule import Schedule, parse
from conformance.simdevice.sites import Site, call_site

DEFAULT_STREAM = 0
REAPER = 1 << 40
"""The queue of memory that several streams use, and nobody refers to any more."""


class Scheduler:
    """The queues of all streams and host tasks, and what makes them go on.

    One lock guards everything: a thread that waits runs what it waits for itself.
    `quiet` is the context in which operations run; `bury` is called before anything is
    queued or waited for while `dead` holds memory that nobody refers to any more.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.quiet: Callable[[], AbstractContextManager[object]] = nullcontext
        self.dead: Any = ()
        self.bury: Callable[[], None] = lambda: None
        self.watcher: Follower | None = None
        self.epoch = 0
        self.reset(parse("lazy"))

    def reset(self, schedule: Schedule) -> None:
        """Forget every queue, stream and error, and begin a new epoch."""
        with self.lock:
            self.epoch += 1
            if self.watcher is not None:
                self.watcher.begin()
            self.schedule = schedule
            self.queues: dict[int, Queue] = {DEFAULT_STREAM: Queue(DEFAULT_STREAM)}
            self.error = ""
            self.in_task = False
            self.local = threading.local()
            self._streams = itertools.count(DEFAULT_STREAM + 1)
            self._tasks = itertools.count(1)
            self._serials = itertools.count()

    # Streams

    def new_stream(self) -> int:
        """The id of a new, empty stream."""
        with self.lock:
            stream = next(self._streams)
            self.queue(stream)
            return stream

    def queue(self, stream: int) -> Queue:
        """The stream's queue; a stream of an earlier epoch gets a new one."""
        queue = self.queues.get(stream)
        if queue is None:
            queue = self.queues.setdefault(stream, Queue(stream))
        return queue

    def current(self) -> int:
        """The id of this thread's current stream."""
        stream: int = getattr(self.local, "stream", DEFAULT_STREAM)
        return stream

    def set_current(self, stream: int) -> None:
        self.local.stream = stream

    def mark(self, stream: int) -> Mark:
        """The end of what is now queued on the stream."""
        with self.lock:
            self._prepare()
            return Mark(self.epoch, stream, self.queue(stream).tail)

    # Queueing

    def next_serial(self) -> int:
        """A number for an operation: above all that were given."""
        with self.lock:
            return next(self._serials)

    def enqueue(
        self,
        name: str,
        run: Callable[[], object],
        writes: tuple[Any, ...] = (),
        reads: tuple[Any, ...] = (),
    ) -> None:
        """Queue an operation on the current stream. Raises `DeviceAssert` after an error."""
        with self.lock:
            self._prepare()
            stream = self.current()
            queue = self.queues.get(stream) or self.queue(stream)
            op = Op(next(self._serials), name, stream, call_site(2), run, writes, reads)
            if self.watcher is not None:
                self._watch(queue, op)
            queue.ops.append(op)
            queue.tail += 1
            if self.schedule.eager:
                self.finish(Mark(self.epoch, queue.stream, queue.tail))

    def enqueue_wait(self, stream: int, mark: Mark) -> None:
        """What is queued on the stream from now on waits for `mark`."""
        with self.lock:
            self._prepare()
            if not self.finished(mark) and mark.stream != stream:
                self._append(self.queue(stream), "wait", call_site(2), None, after=mark)

    def enqueue_free(
        self, stream: int, run: Callable[[], object], users: Iterable[int], memory: Any
    ) -> None:
        """Queue what becomes of freed memory, after what its other users now have queued."""
        users = [user for user in users if user != stream]
        # As CUDA's allocator: the owner's stream goes on; only reuse waits for the users.
        queue, site = self.queue(REAPER if users else stream), call_site(2)
        for user in (stream, *users) if users else ():
            mark = Mark(self.epoch, user, self.queue(user).tail)
            self._append(queue, "record_stream", site, None, after=mark)
        self._append(queue, "free", site, run, (memory,))

    def enqueue_task(
        self,
        name: str,
        run: Callable[[], object],
        after: Iterable[Mark],
        writes: tuple[Any, ...] = (),
        reads: tuple[Any, ...] = (),
    ) -> Mark:
        """Queue a host task that may begin once all of `after` are reached; its mark."""
        with self.lock:
            self._prepare()
            queue, site = self.queue(-next(self._tasks)), call_site(2)
            for mark in after:
                self._append(queue, "wait", site, None, after=mark)
            self._append(queue, name, site, run, writes, reads)
            mark = Mark(self.epoch, queue.stream, queue.tail)
            if self.schedule.eager:
                self.finish(mark)
            return mark

    def _append(
        self,
        queue: Queue,
        name: str,
        site: Site,
        run: Callable[[], object] | None,
        writes: tuple[Any, ...] = (),
        reads: tuple[Any, ...] = (),
        after: Mark | None = None,
    ) -> None:
        op = Op(next(self._serials), name, queue.stream, site, run, writes, reads, after)
        if self.watcher is not None:
            self._watch(queue, op)
        queue.ops.append(op)
        queue.tail += 1

    def _watch(self, queue: Queue, op: Op) -> None:
        """Tell the watcher of `op`, and queue first what it wants to come before."""
        assert self.watcher is not None
        mark = self.watcher.before_next() if op.run is not None else None
        if mark is not None and not self.finished(mark):
            wait = Op(next(self._serials), "wait", queue.stream, op.site, None, after=mark)
            queue.ops.append(wait)
            queue.tail += 1
            self.watcher.queued(wait, queue.tail)
        self.watcher.queued(op, queue.tail + 1)

    # Waiting

    def check(self) -> None:
        """Raise the error that the device has met, if any."""
        if self.error:
            raise DeviceAssert(f"the device has failed before; reset() it. {self.error}")

    def finished(self, mark: Mark) -> bool:
        queue = self.queues.get(mark.stream)
        return mark.epoch != self.epoch or queue is None or queue.done >= mark.position

    def finish(self, mark: Mark) -> None:
        """Run until the mark is reached."""
        with self.lock:
            self._prepare()
            self._told_host(mark)
            if self.finished(mark):
                return
            queue = self.queues[mark.stream]
            with self.quiet():
                if len(self.queues) == 1 and queue.tail == mark.position:
                    self._drain(queue)
                while queue.done < mark.position:
                    self._advance(self._next(queue))

    def finish_stream(self, stream: int) -> None:
        with self.lock:
            self._prepare()
            queue = self.queue(stream)
            self._told_host(Mark(self.epoch, stream, queue.tail))
            if queue.ops:
                self.finish(Mark(self.epoch, stream, queue.tail))

    def finish_all(self) -> None:
        """Run until no stream has anything left. Host tasks may run; none has to."""
        with self.lock:
            self._prepare()
            for queue in self.queues.values():
                if queue.stream >= 0:
                    self._told_host(Mark(self.epoch, queue.stream, queue.tail))
            with self.quiet():
                if len(self.queues) == 1:
                    # No other can come: host code runs in tasks only.
                    self._drain(self.queues[DEFAULT_STREAM])
                while streams := [q for q in self.queues.values() if q.ops and q.stream >= 0]:
                    queues = streams + self._free_tasks()
                    self._advance(queues[self.schedule.pick(len(queues))])

    def finish_tasks(self) -> None:
        """Run until neither a stream nor a host task has anything left."""
        with self.lock:
            while tasks := [q for q in self.queues.values() if q.ops and q.stream < 0]:
                self.finish(Mark(self.epoch, tasks[0].stream, tasks[0].tail))
            self.finish_all()

    def poll(self, mark: Mark) -> bool:
        """Whether the mark is reached; each call lets one operation finish."""
        with self.lock:
            self._prepare()
            if not self.finished(mark):
                with self.quiet():
                    self._advance(self._next(self.queues[mark.stream]))
            if is_reached := self.finished(mark):
                self._told_host(mark)
            return is_reached

    def unfinished(self) -> list[Op]:
        """What is queued and does something, oldest first."""
        with self.lock:
            if self.dead:
                self.bury()
            ops = [op for queue in self.queues.values() for op in queue.ops if op.run is not None]
            return sorted(ops, key=lambda op: op.serial)

    def _told_host(self, mark: Mark) -> None:
        if self.watcher is not None:
            self.watcher.host_waited(mark)

    def _drain(self, queue: Queue) -> None:
        """Finish the only queue there is, which waits for nothing."""
        ops = queue.ops
        while ops:
            op = ops.popleft()
            if op.run is not None:
                self._run(op)
            queue.done += 1

    def _prepare(self) -> None:
        if self.dead:
            self.bury()
        if self.error:
            self.check()

    def _next(self, wanted: Queue) -> Queue:
        """The queue that is waited for, or another that the schedule lets go first."""
        if self.schedule.chooser is None or len(self.queues) == 1:
            return wanted
        queues = [wanted]
        queues += [q for q in self.queues.values() if q.ops and q.stream >= 0 and q is not wanted]
        queues += [q for q in self._free_tasks() if q is not wanted]
        return queues[self.schedule.pick(len(queues))]

    def _free_tasks(self) -> list[Queue]:
        """Host tasks that may run now. None inside another: it could not wait for it."""
        if self.schedule.chooser is None or self.in_task:
            return []
        return [queue for queue in self.queues.values() if queue.ops and queue.stream < 0]

    def _advance(self, queue: Queue) -> None:
        """Run the first operation of the queue, or one that it has to wait for."""
        while queue.ops and (mark := queue.ops[0].after) and not self.finished(mark):
            queue = self.queues[mark.stream]
        if not queue.ops:
            raise SimError("a host task waits for itself")
        op = queue.ops.popleft()
        if op.run is not None:
            self._run(op)
        queue.done += 1
        if not queue.ops and not 0 <= queue.stream < REAPER:
            self.queues.pop(queue.stream, None)

    def _run(self, op: Op) -> None:
        assert op.run is not None
        try:
            op.run()
        except Exception as error:
            reason = str(error).split("\n", 1)[0]
            self.error = (
                f"Device-side assert in {op.name}, queued at {op.site} on stream {op.stream}: "
                f"{type(error).__name__}: {reason}"
            )
            raise DeviceAssert(self.error) from error


SCHEDULER = Scheduler()
