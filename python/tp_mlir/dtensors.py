# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DTensors as parameters of programs: this process's rank takes its block of them, and they are made of its blocks.

A program says which elements of a parameter each rank holds, and so do the mesh and the placements of a DTensor. If these are
the same elements on all ranks, a block is taken as it is. Otherwise the ranks send each other what they lack. (PyTorch's
`redistribute` would gather the tensor on CPUs, where it has no all-to-all.)
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import torch

from . import processes
from .errors import MeshError, UnsupportedError, WeightError
from .mesh import DeviceMesh, Layout, get_torch_mesh, read_mesh
from .placements import is_from, spell

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor, Placement

_get_version = operator.attrgetter("_version")
_get_pointer = torch.Tensor.data_ptr
# The elements along one dimension of a tensor: offsets and sizes.
_Pieces = list[tuple[int, int]]
# A rank's part of a tensor, by dimension.
_Block = list[_Pieces]
_STRIDED = re.compile(r"_StridedShard\((\d+), split_factor=(\d+)\)")
_SHARD = re.compile(r"Shard\((\d+)(?:, segments=\[([\d, ]+)\])?\)")


def is_dtensor(tensor: Any) -> TypeGuard[DTensor]:
    return type(tensor).__name__ == "DTensor" and is_from(tensor, "torch.distributed.tensor")


def get_local(tensor: DTensor) -> torch.Tensor:
    """What this process holds of a DTensor, in the memory of the DTensor."""
    return tensor._local_tensor.detach().resolve_neg()  # to_local() is for autograd


def is_whole(tensor: DTensor) -> bool:
    """Whether each process holds all of a DTensor."""
    return all(size == 1 or placement.is_replicate() for placement, size in zip(tensor.placements, tensor.device_mesh.shape))


def observe(tensors: Sequence[torch.Tensor]) -> tuple[list[Any], list[int]]:
    """The versions and the addresses of tensors. One of them changes if a tensor is written to, or another one takes its place."""
    versions, pointers = list(map(_get_version, tensors)), list(map(_get_pointer, tensors))
    if 0 in pointers:  # of a DTensor, whose block may be written to alone, or of a tensor without elements
        for i, tensor in enumerate(tensors):
            if is_dtensor(tensor):
                local = tensor._local_tensor
                versions[i], pointers[i] = (versions[i], local._version), local.data_ptr()
    return versions, pointers


def list_dtensors(module: torch.nn.Module) -> dict[str, DTensor]:
    """The parameters and buffers of `module` that are DTensors, by their FQNs."""
    tensors: Iterable[tuple[str, Any]] = itertools.chain(module.named_parameters(), module.named_buffers())
    return {fqn: tensor for fqn, tensor in tensors if is_dtensor(tensor)}


def find_problem(tensor: DTensor) -> str | None:
    """Why a program can't read a DTensor, whatever its mesh is."""
    for placement, name in zip(tensor.placements, tensor.device_mesh.mesh_dim_names or range(tensor.device_mesh.ndim)):
        if placement.is_partial():
            return (f"is a DTensor with the placement {placement} over the mesh dimension {name!r}, so its values aren't computed yet; "
                    "redistribute it, as in tensor.redistribute(placements=[Replicate()])")
    size = tensor.device_mesh.size()
    if processes.count() == 1 and size > 1:
        return (f"is a DTensor over {size} ranks, of which this process has one block, and ranks that are threads of one process need all; "
                "start one process for each rank, as torchrun does")
    return None


@functools.lru_cache(maxsize=64)
def _read_mesh(mesh: Any) -> DeviceMesh:
    return read_mesh(mesh)


def find_mesh(module: torch.nn.Module, *, known: Layout | None = None, known_as: str = "") -> DeviceMesh | None:
    """The mesh with all dimensions of the module's DTensors; None if it has none.

    :param known: the only mesh that is allowed, which `known_as` is about.
    :raises WeightError: a DTensor can't be read.
    :raises MeshError: the DTensors have several meshes, or the processes can't run their ranks."""
    found: DeviceMesh | None = None
    for fqn, tensor in list_dtensors(module).items():
        if problem := find_problem(tensor):
            raise WeightError(f"'{fqn}' {problem}", fqn=fqn)
        try:
            mesh = _read_mesh(tensor.device_mesh)
        except MeshError as error:
            raise MeshError(f"'{fqn}' is a DTensor over a mesh that programs can't have: {error.message}", fqn=fqn) from None
        if known is None:
            known, known_as = mesh.layout, f"'{fqn}' is one"
        if mesh.layout != known:
            raise MeshError(f"'{fqn}' is a DTensor over the mesh {_describe(mesh.layout)}, and {known_as} over {_describe(known)}; all DTensors "
                            "of a module are over the mesh of its plan, or over dimensions of it", fqn=fqn)
        found = mesh
    return found.get_whole() if found else None


def _describe(layout: Layout) -> str:
    sizes = ", ".join(f"{name}={size}" for name, size in layout.axes)
    return f"({sizes})" + ("" if layout.ranks == tuple(range(len(layout.ranks))) else f" of the ranks {list(layout.ranks)}")


def list_placements(tensor: DTensor) -> dict[str, str]:
    """The placement over each dimension of the whole mesh, as a plan has it."""
    mesh = _read_mesh(tensor.device_mesh)
    return dict(zip((name for name, _ in mesh.layout.axes), map(spell, _expand(tensor, mesh.layout))))


def _expand(tensor: DTensor, layout: Layout) -> list[Placement]:
    """The tensor's placements over the whole mesh.

    :raises UnsupportedError: no placements over its dimensions say the same."""
    from torch.distributed.tensor import Replicate
    mesh = _read_mesh(tensor.device_mesh)
    names = [name for name, _ in layout.axes]
    placements: list[Placement] = [Replicate()] * len(names)
    for axes, placement in zip(mesh.dimensions, tensor.placements):
        for axis in axes:
            placements[names.index(axis)] = placement
    if any(len(axes) > 1 for axes in mesh.dimensions):
        whole, shape = mesh.get_whole(), tuple(tensor.shape)
        for rank in layout.ranks:
            if (_find_block(shape, tensor.placements, mesh.shape, mesh.locate(rank))
                    != _find_block(shape, placements, whole.shape, whole.locate(rank))):
                raise UnsupportedError(f"a DTensor of shape {shape} is split over a flattened mesh dimension in blocks that the dimensions "
                                       f"{', '.join(map(repr, names))} can't express; distribute it over these")
    return placements


def _take(pieces: _Pieces, first: int, last: int) -> _Pieces:
    """The elements with the numbers `first` to `last` - 1."""
    taken = []
    for offset, size in pieces:
        begin, end = max(first, 0), min(last, size)
        if begin < end:
            taken.append((offset + begin, end - begin))
        first, last = first - size, last - size
    return taken


def _divide(pieces: _Pieces, count: int) -> Iterator[_Pieces]:
    """`count` chunks, as torch.chunk makes them, of which the last ones may be empty."""
    step = -(-sum(size for _, size in pieces) // count)
    return (_take(pieces, i * step, (i + 1) * step) for i in range(count))


def _join(pieces: _Pieces) -> _Pieces:
    joined: _Pieces = []
    for offset, size in pieces:
        if joined and sum(joined[-1]) == offset:
            joined[-1] = joined[-1][0], joined[-1][1] + size
        elif size:
            joined.append((offset, size))
    return joined


def _find_block(shape: Sequence[int], placements: Sequence[Placement], sizes: Sequence[int], position: Sequence[int]) -> _Block:
    """What a DTensor's placements give to the rank at `position` of a mesh: the elements along each dimension."""
    dims: list[_Pieces] = [[(0, size)] for size in shape]
    for placement, count, index in zip(placements, sizes, position):
        dim: Any = getattr(placement, "dim", None)
        match type(placement).__name__:
            case "Shard":
                dims[dim] = list(_divide(dims[dim], count))[index]
            case "_StridedShard":
                parts = _divide(dims[dim], placement.split_factor)  # type: ignore[attr-defined]
                dims[dim] = [piece for part in parts for piece in list(_divide(part, count))[index]]
    return list(map(_join, dims))


class Sharding:
    """How the ranks of a program hold a parameter or a result. `tensor` is its description in the artifact's manifest."""

    def __init__(self, tensor: Mapping[str, Any], layout: Layout) -> None:
        self.name: str = tensor["name"]
        self.shape: tuple[int, ...] = tuple(tensor["shape"])
        self._layout = layout
        self._placements: list[str] = tensor["placements"]
        self._blocks = [[_join(list(zip(pieces[::2], pieces[1::2]))) for pieces in dims] for dims in tensor["shards"]]
        self._blocks_of: dict[Any, list[_Block]] = {}

    @property
    def local_shape(self) -> tuple[int, ...]:
        """The shape of the block of this process's rank."""
        return tuple(sum(size for _, size in pieces) for pieces in self._blocks[processes.get_rank()])

    @functools.cached_property
    def placements(self) -> list[Placement]:
        """Those of DTensor, over the whole mesh.

        :raises WeightError: none say the same."""
        placements = [self._parse(text) for text in self._placements]
        whole = DeviceMesh.of(self._layout)
        if any(_find_block(self.shape, placements, whole.shape, whole.locate(rank)) != self._blocks[rank] for rank in self._layout.ranks):
            raise self._refuse()
        return placements

    def _parse(self, text: str) -> Placement:
        from torch.distributed.tensor import Replicate, Shard
        from torch.distributed.tensor.placement_types import _StridedShard
        if text == "Replicate":
            return Replicate()
        if found := _STRIDED.fullmatch(text):
            return _StridedShard(int(found[1]), split_factor=int(found[2]))
        if found := _SHARD.fullmatch(text):
            sizes = [int(size) for size in (found[2] or "").split(",") if size]
            if len(set(sizes)) > 1:
                raise self._refuse()
            return _StridedShard(int(found[1]), split_factor=len(sizes)) if len(sizes) > 1 else Shard(int(found[1]))
        raise self._refuse()

    def _refuse(self) -> WeightError:
        return WeightError(f"'{self.name}' can't be a DTensor: the program holds it as ({', '.join(self._placements)}), and the placements of "
                           "DTensor can't say which elements each rank has", fqn=self.name)

    def _find_blocks(self, tensor: DTensor) -> list[_Block]:
        """The blocks of `tensor`, by rank.

        :raises WeightError: it has no values yet, or not all of them are in processes.
        :raises MeshError: its mesh isn't that of the program."""
        key = tensor.device_mesh, tuple(tensor.placements)
        if key not in self._blocks_of:
            if problem := find_problem(tensor):
                raise WeightError(f"'{self.name}' {problem}", fqn=self.name)
            mesh = _read_mesh(tensor.device_mesh)
            if mesh.layout != self._layout:
                raise MeshError(f"'{self.name}' is a DTensor over the mesh {_describe(mesh.layout)}, and its program is for the mesh "
                                f"{_describe(self._layout)}", fqn=self.name)
            self._blocks_of[key] = [_find_block(self.shape, tensor.placements, mesh.shape, mesh.locate(rank))
                                    for rank in range(len(self._layout.ranks))]
        return self._blocks_of[key]

    def check(self) -> None:
        """:raises WeightError: no placements of DTensor say which elements each rank has."""
        self.placements  # noqa: B018

    def split(self, tensor: DTensor) -> torch.Tensor:
        """The block of this process's rank. All processes call it."""
        return _move(get_local(tensor), self._find_blocks(tensor), self._blocks)

    def join(self, block: torch.Tensor) -> DTensor:
        """The DTensor of which each process has a block."""
        return _make(block, get_torch_mesh(self._layout), self.placements, self.shape)

    def join_like(self, block: torch.Tensor, tensor: DTensor) -> DTensor:
        """The same with the mesh and the placements of `tensor`. All processes call it."""
        return make_like(_move(block, self._blocks, self._find_blocks(tensor)), tensor)


def _overlap(source: _Pieces, target: _Pieces) -> list[tuple[int, int, int]]:
    """The elements that two blocks have in common along a dimension: where they begin in each of them, and how many follow."""
    found, begin = [], 0
    for offset, size in source:
        other_begin = 0
        for other, other_size in target:
            first, last = max(offset, other), min(offset + size, other + other_size)
            if first < last:
                found.append((begin + first - offset, other_begin + first - other, last - first))
            other_begin += other_size
        begin += size
    return found


def _move(block: torch.Tensor, sources: Sequence[_Block], targets: Sequence[_Block]) -> torch.Tensor:
    """What this process's rank has of a tensor if the ranks have the blocks `targets` of it. `block`: what it has if they have
    `sources`. Each element that a rank lacks comes from one other rank."""
    if sources == targets:
        return block
    ranks, me = range(len(targets)), processes.get_rank()
    holders: dict[tuple[tuple[tuple[int, int], ...], ...], list[int]] = {}
    for rank in ranks:
        holders.setdefault(tuple(map(tuple, sources[rank])), []).append(rank)

    def find(source: int, target: int) -> list[tuple[tuple[int, int, int], ...]]:
        """The boxes of elements that `target` gets from `source`."""
        same = holders[tuple(map(tuple, sources[source]))]
        if source != (target if target in same else same[target % len(same)]):
            return []
        return list(itertools.product(*map(_overlap, sources[source], targets[target])))

    def cut(tensor: torch.Tensor, box: Sequence[tuple[int, int, int]], side: int) -> torch.Tensor:
        return tensor[tuple(slice(part[side], part[side] + part[2]) for part in box)]

    moved = block.new_empty([sum(size for _, size in pieces) for pieces in targets[me]])
    for box in find(me, me):
        cut(moved, box, 1).copy_(cut(block, box, 0))
    if any(find(source, target) for source in ranks for target in ranks if source != target):
        nothing = block.new_empty(0)
        sent = [torch.cat([nothing, *(cut(block, box, 0).reshape(-1) for box in find(me, target) if target != me)]) for target in ranks]
        boxes = [find(source, me) if source != me else [] for source in ranks]
        counts = [sum(math.prod(part[2] for part in box) for box in of_rank) for of_rank in boxes]
        for of_rank, received in zip(boxes, processes.exchange(sent, counts)):
            for box in of_rank:
                size = math.prod(part[2] for part in box)
                cut(moved, box, 1).copy_(received[:size].view([part[2] for part in box]))
                received = received[size:]
    return moved


def _make(block: torch.Tensor, mesh: Any, placements: Sequence[Placement], shape: Sequence[int]) -> DTensor:
    from torch.distributed.tensor import DTensor
    strides = tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))
    with torch.no_grad():
        made: DTensor = DTensor.from_local(block, mesh, placements, run_check=False, shape=torch.Size(shape), stride=strides)
    return made


def make_like(block: torch.Tensor, tensor: DTensor) -> DTensor:
    """A DTensor of blocks that are those of `tensor`."""
    return _make(block, tensor.device_mesh, tensor.placements, tensor.shape)


def share_versions(state: dict[str, Any], module: torch.nn.Module, prefix: str) -> None:
    """Lets PyTorch count writes to the blocks in the module's `state` as writes to those of the module, which it does for other
    tensors: a checkpoint may be loaded into a state_dict."""
    for fqn, tensor in itertools.chain(module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False)):
        key = f"{prefix}{fqn}"
        if is_dtensor(tensor) and is_dtensor(state.get(key)) and state[key] is not tensor:
            state[key] = make_like(get_local(tensor), tensor)


def write(tensor: DTensor, block: torch.Tensor) -> None:
    """Gives this process's block of a DTensor new values."""
    get_local(tensor).copy_(block)
    torch.autograd.graph.increment_version(tensor)
