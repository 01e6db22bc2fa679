# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks that are processes, as under torchrun: each process of torch.distributed runs one rank of a mesh.

The ranks exchange bytes by gloo, in process groups of their own, so that the collectives of a script can't be mixed up with
them. The store of torch.distributed tells the processes why one of them has failed.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import functools
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ._native import AbortedError
from .errors import ExecutionError, MeshError
from .threads import repeated

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist

_Result = TypeVar("_Result")
# How long to wait for what other processes say about a failure, in seconds.
_LAST_WORDS = 2.0
# How often a process shows that it is working, in seconds.
_SIGN_OF_LIFE = 0.5
# The place in gloo's sources that a message comes from.
_SOURCE = re.compile(r"^\[[^]]*\]\s*")


def count() -> int:
    """The number of processes that run ranks; 1 if all ranks are threads of this process."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    # The ranks of the backend 'fake' are no processes.
    return 1 if distributed.get_backend() == "fake" else distributed.get_world_size()


def get_rank() -> int:
    """The rank that this process runs, or 0 if it runs all."""
    return sys.modules["torch.distributed"].get_rank() if count() > 1 else 0


def start() -> None:
    """Makes the default process group under torchrun, as PyTorch's init_device_mesh does."""
    if _count_started() > 1:
        import torch.distributed as dist
        if not dist.is_initialized():
            dist.init_process_group("gloo")


def _count_started() -> int:
    """The number of processes that torchrun has started."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "TORCHELASTIC_RUN_ID" in os.environ else 1


def check_mesh(size: int) -> None:
    """:raises MeshError: the processes can't run a mesh of `size` ranks."""
    processes, started = count(), _count_started()
    if processes == 1:
        distributed = sys.modules.get("torch.distributed")
        if started > 1 and not (distributed is not None and distributed.is_available() and distributed.is_initialized()):
            raise MeshError(f"torchrun has started {started} processes, and they have no process group: call "
                            "torch.distributed.init_process_group('gloo') or init_device_mesh before")
        return
    if size != processes:
        raise MeshError(f"a mesh has one rank for each process, or all of its ranks in one process: this one has {size} ranks, and "
                        f"{processes} processes run this script")
    parts = sys.modules["torch.distributed"].get_backend_config().split(",")
    backend = next((part.removeprefix("cpu:") for part in parts if part.startswith("cpu:")), None)
    if backend != "gloo":
        raise MeshError("the ranks exchange tensors in the host's memory by gloo, and the default process group has "
                        f"{repr(backend) if backend else 'no backend'} for CPUs; make it by init_process_group('gloo') or, beside NCCL, "
                        "by init_process_group('cpu:gloo,cuda:nccl')")


def get_session_options(size: int) -> dict[str, Any]:
    """The options of a session for programs of `size` ranks.

    :raises MeshError: the processes can't run them."""
    check_mesh(size)
    return {"transport": Transport()} if count() > 1 else {}


def broadcast(tensors: Iterable[torch.Tensor], rank: int) -> None:
    """Gives all processes the values that `rank` has.

    :raises MeshError: there is no such rank."""
    if count() == 1:
        return
    import torch
    import torch.distributed as dist
    groups = _get_groups()
    if not 0 <= rank < groups.size:
        raise MeshError(f"src_data_rank is {rank}, and {groups.size} processes run this script")
    everyone = tuple(range(groups.size))
    groups.make(everyone)
    with torch.no_grad():
        for tensor in tensors:
            if tensor.device.type != "cpu" or not tensor.numel():
                continue  # which is reported when the module is compiled
            values = tensor.detach().contiguous()
            bytes = values.view(-1).view(torch.uint8)
            groups.call(everyone, functools.partial(dist.broadcast, bytes, rank))
            tensor.copy_(values)


def exchange(sent: Sequence[torch.Tensor], counts: Sequence[int]) -> Sequence[torch.Tensor]:
    """Sends each rank the elements `sent` for it; returns those that it sends, of which there are `counts`."""
    import torch
    import torch.distributed as dist
    groups = _get_groups()
    everyone = tuple(range(groups.size))
    groups.make(everyone)
    width = sent[0].element_size()
    output, input = sent[0].new_empty(sum(counts)), torch.cat(list(sent))
    received_sizes, sent_sizes = [width * count for count in counts], [width * part.numel() for part in sent]
    groups.call(everyone, lambda group: dist.all_to_all_single(output.view(torch.uint8), input.view(torch.uint8), received_sizes, sent_sizes,
                                                               group))
    return torch.split(output, list(counts))


@contextlib.contextmanager
def rank_zero_first(key: str) -> Iterator[None]:
    """What is in it, work with a result that `key` names, is done by rank 0, and then by the others."""
    if count() == 1:
        yield
        return
    groups = _get_groups()
    if groups.rank == 0:
        with groups.working(key):
            yield
    else:
        groups.wait(key, f"rank {groups.rank} has waited for rank 0 to compile the same program")
        yield


class _Groups:
    """Process groups beside the default group that the user has made, one for each list of ranks that exchange data.

    A process that fails closes its groups. This ends the calls of the processes that wait for it, which close theirs in turn.
    The next run makes others."""

    def __init__(self, default: dist.ProcessGroup, generation: int) -> None:
        import torch
        import torch.distributed as dist
        from torch.distributed import distributed_c10d
        self.default, self.generation = default, generation
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.timeout: datetime.timedelta = default._get_backend(torch.device("cpu")).options._timeout
        self._store = distributed_c10d._get_default_store()
        self._known: dict[tuple[int, ...], dist.ProcessGroup] = {}
        self._busy: set[int] = set()  # threads
        self.is_closed = False

    def make(self, ranks: tuple[int, ...]) -> None:
        """All processes make the same groups in the same order."""
        import torch.distributed as dist
        if ranks not in self._known:
            make = functools.partial(dist.new_group, list(ranks), timeout=self.timeout, backend="gloo")
            self._known[ranks] = self._guard(make, f"rank {self.rank} can't connect to the others")

    def call(self, ranks: tuple[int, ...], collective: Callable[[dist.ProcessGroup], Any]) -> None:
        """Calls a function with the group of `ranks`.

        :raises AbortedError: another process has said why it failed.
        :raises ExecutionError: the others can't be reached."""
        if ranks not in self._known:
            raise AbortedError("a call of another thread has failed, which has closed the process groups")
        self._guard(lambda: collective(self._known[ranks]), "the ranks can't exchange data")

    def _guard(self, work: Callable[[], _Result], what: str) -> _Result:
        self._busy.add(threading.get_ident())
        try:
            return work()
        except (RuntimeError, ValueError) as error:  # the latter if the user has destroyed the groups
            text = f"{what}: {_shorten(str(error))}"
        finally:
            self._busy.discard(threading.get_ident())
        # Outside of the handler, where nothing refers to the groups any more: leaving closes their connections.
        self._leave()
        silent = self._find_silent()
        if silent:
            text += f"; no answer from {' and '.join(f'rank {rank}' for rank in silent)} within {_LAST_WORDS:g} s"
        raise ExecutionError(f"{text}; the timeout of the process group is {self.timeout.total_seconds():g} s")

    def _find_silent(self) -> list[int]:
        """The ranks that don't notice the failure."""
        end = time.monotonic() + _LAST_WORDS
        silent = [rank for rank in range(self.size) if rank != self.rank]
        while True:
            if (reason := self._ask("failure")) is not None:
                raise AbortedError(reason)
            silent = [rank for rank in silent if self._ask(f"left/{rank}") is None]
            if not silent or time.monotonic() > end:
                return silent
            time.sleep(0.05)

    def abort(self, reason: str) -> None:
        """Ends the calls of the other processes, with this reason."""
        self.tell("failure", reason)
        self._leave()

    def _leave(self) -> None:
        self._destroy()
        self.tell(f"left/{self.rank}", "left")

    def exit(self) -> None:
        """Ends gloo's threads before Python ends. They free the tensors of a collective after it has returned, and a thread that
        needs the GIL for that aborts the process once Python is ending."""
        if not self._busy:  # else a collective may wait for other processes
            self._destroy()

    def _destroy(self) -> None:
        import torch.distributed as dist
        self.is_closed = True
        while self._known:
            group: Any = self._known.popitem()[1]
            if group is not dist.GroupMember.NON_GROUP_MEMBER:
                with contextlib.suppress(RuntimeError, ValueError, AssertionError):  # it has failed, or the user has destroyed it
                    dist.destroy_process_group(group)
            del group

    # The store of torch.distributed, of which nothing is known if its process has ended.

    def _name(self, key: str) -> str:
        return f"tp_mlir/{self.generation}/{key}"

    def tell(self, key: str, text: str) -> None:
        """The first text counts."""
        with contextlib.suppress(RuntimeError):
            self._store.compare_set(self._name(key), "", text)

    def _ask(self, key: str) -> str | None:
        with contextlib.suppress(RuntimeError):
            if self._store.check([self._name(key)]):
                return self._store.get(self._name(key)).decode()
        return None

    @contextlib.contextmanager
    def working(self, key: str) -> Iterator[None]:
        """Lets the processes that wait() for `key` wait until it ends, which may take longer than the timeout."""
        try:
            with repeated(lambda: self._store.add(self._name(f"{key}/signs"), 1), seconds=_SIGN_OF_LIFE):
                yield
        finally:
            self.tell(key, "done")

    def wait(self, key: str, what: str) -> None:
        def look() -> None:
            signs, end = -1, 0.0
            while self._ask(key) is None:
                if (found := self._store.add(self._name(f"{key}/signs"), 0)) != signs:
                    signs, end = found, time.monotonic() + self.timeout.total_seconds()
                if time.monotonic() > end or self._ask("failure") is not None:
                    raise RuntimeError("it gives no sign of life")
                time.sleep(0.02)

        self._guard(look, what)


_groups: _Groups | None = None


def _get_groups() -> _Groups:
    global _groups
    import torch.distributed as dist
    default = dist.group.WORLD
    if default is None:
        raise ExecutionError("the process group has been destroyed, and the ranks need it as long as they run")
    if _groups is None:
        atexit.register(_exit)
    if _groups is None or _groups.default is not default or _groups.is_closed:
        _groups = _Groups(default, _groups.generation + 1 if _groups else 0)
    return _groups


def _exit() -> None:
    if _groups is not None:
        _groups.exit()


class Transport:
    """Moves the bytes of a session's ranks, see _Transport in _native.pyi."""

    name = "gloo"

    def __init__(self) -> None:
        self._groups = _get_groups()
        self.rank, self.world_size = self._groups.rank, self._groups.size
        self._members: list[tuple[int, ...]] = []

    def connect(self, groups: Sequence[Sequence[int]]) -> None:
        self._groups, self._members = _get_groups(), list(map(tuple, groups))
        for members in self._members:
            self._groups.make(members)

    def all_to_all(self, group: int, sent: memoryview, sent_sizes: list[int], received: memoryview, received_sizes: list[int]) -> None:
        import torch.distributed as dist
        if group == 0 and self._groups is not _get_groups():
            self.connect(self._members)  # another session has failed; all runs begin in group 0
        members = self._members[group]
        self._groups.call(members, lambda members: dist.all_to_all_single(_view(received), _view(sent), received_sizes, sent_sizes, members))

    def abort(self, reason: str) -> None:
        self._groups.abort(reason)


def _shorten(text: str) -> str:
    """gloo's message without advice, and without the place in its sources."""
    return _SOURCE.sub("", text).strip().partition("\n")[0].partition(". This is")[0]


def _view(memory: memoryview) -> Any:
    import torch
    return torch.frombuffer(memory, dtype=torch.uint8) if memory.nbytes else torch.empty(0, dtype=torch.uint8)
