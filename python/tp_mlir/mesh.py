# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Meshes: torch's DeviceMesh without process groups, and reading PyTorch's own."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from . import processes
from .errors import MeshError
from .placements import is_from


@dataclasses.dataclass(frozen=True)
class Layout:
    """All ranks: the names and sizes of a mesh's dimensions, major to minor, and the rank at each position."""

    axes: tuple[tuple[str, int], ...]
    ranks: tuple[int, ...]

    def describe(self) -> Any:
        """The key `mesh` of a plan."""
        axes = dict(self.axes)
        if self.ranks == tuple(range(len(self.ranks))):
            return axes
        return {"dims": axes, "devices": list(self.ranks)}


class DeviceMesh:
    """Ranks, arranged in a mesh. They are the processes of torch.distributed, if there are several, or else threads of this process.
    Making a mesh starts none."""

    def __init__(self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None) -> None:
        """`mesh`: the ranks, in nested lists or a tensor."""
        ranks, shape = _flatten_ranks(mesh.tolist() if hasattr(mesh, "tolist") else mesh)
        if sorted(ranks) != list(range(len(ranks))):
            raise MeshError(f"a mesh of {len(ranks)} ranks has the ranks 0 to {len(ranks) - 1}, each of them once; found "
                            f"{', '.join(map(str, ranks))}")
        _check_device_type(device_type)
        names = _check_names(mesh_dim_names, len(shape))
        self.device_type = device_type
        self.layout = Layout(tuple(zip(names, shape)), tuple(ranks))
        # Each of the mesh's dimensions is one or more dimensions of the layout, with a name of its own.
        self._dims: tuple[tuple[str, tuple[str, ...]], ...] = tuple((name, (name,)) for name in names)
        self._flattened: dict[str, tuple[str, ...]] = {}  # shared with all sub-meshes

    @property
    def mesh_dim_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self._dims)

    @property
    def axes(self) -> tuple[str, ...]:
        """The dimensions of the layout that the mesh consists of."""
        return tuple(axis for _, axes in self._dims for axis in axes)

    @property
    def dimensions(self) -> list[tuple[str, ...]]:
        """For each dimension, those of the layout that it consists of."""
        return [axes for _, axes in self._dims]

    @staticmethod
    def of(layout: Layout) -> DeviceMesh:
        """The mesh of all ranks."""
        mesh = object.__new__(DeviceMesh)
        mesh.__dict__.update(device_type="cpu", layout=layout, _dims=tuple((name, (name,)) for name, _ in layout.axes), _flattened={})
        return mesh

    def get_whole(self) -> DeviceMesh:
        """The mesh that this one is a part of."""
        return self._select(DeviceMesh.of(self.layout)._dims)

    @property
    def shape(self) -> tuple[int, ...]:
        sizes = dict(self.layout.axes)
        return tuple(math.prod(sizes[axis] for axis in axes) for _, axes in self._dims)

    @property
    def ndim(self) -> int:
        return len(self._dims)

    def size(self, mesh_dim: int | None = None) -> int:
        return math.prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    def get_rank(self) -> int:
        """The rank that this process runs; 0 if it runs all of them."""
        return processes.get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The position of this process's rank along a dimension."""
        if isinstance(mesh_dim, str):
            return self[mesh_dim].get_local_rank()
        if mesh_dim is None and self.ndim != 1:
            raise MeshError(f"the mesh has the dimensions {', '.join(map(repr, self.mesh_dim_names))}; get_local_rank takes one of them")
        return self.get_coordinate()[mesh_dim or 0]

    def get_coordinate(self) -> list[int]:
        """The position of this process's rank along each dimension; zeros if it runs all of them."""
        if processes.count() == 1:
            return [0] * self.ndim
        processes.check_mesh(len(self.layout.ranks))
        return self.locate(self.get_rank())

    def locate(self, rank: int) -> list[int]:
        """The position of a rank along each dimension."""
        rest, positions, sizes = self.layout.ranks.index(rank), {}, dict(self.layout.axes)
        for axis, size in reversed(self.layout.axes):
            rest, positions[axis] = divmod(rest, size)
        return [functools.reduce(lambda index, axis: index * sizes[axis] + positions[axis], axes, 0) for _, axes in self._dims]

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        names = (names,) if isinstance(names, str) else tuple(names)
        known = dict(self._dims) | self._flattened
        for name in names:
            if name not in known:
                raise MeshError(f"the mesh has no dimension {name!r}; it has {', '.join(map(repr, known))}")
        return self._select(tuple((name, known[name]) for name in names))

    def _select(self, dims: tuple[tuple[str, tuple[str, ...]], ...]) -> DeviceMesh:
        order = [axis for axis, _ in self.layout.axes]
        positions = [order.index(axis) for _, axes in dims for axis in axes]
        if positions != sorted(set(positions)):
            raise MeshError("the dimensions of a sub-mesh are in the order of the mesh, each of them once; found "
                            + ", ".join(repr(name) for name, _ in dims))
        mesh = object.__new__(DeviceMesh)
        mesh.__dict__.update(vars(self), _dims=dims)
        return mesh

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """The mesh as one dimension."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names)
        if name in dict(self.layout.axes) and self.axes != (name,) or self._flattened.get(name, self.axes) != self.axes:
            raise MeshError(f"the mesh has a dimension {name!r} already; give the flattened one another name")
        self._flattened[name] = self.axes
        return self._select(((name, self.axes),))

    def __enter__(self) -> DeviceMesh:
        _current.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _current.pop()

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, DeviceMesh) and (self.layout, self._dims) == (other.layout, other._dims)

    def __hash__(self) -> int:
        return hash((self.layout, self._dims))

    def __repr__(self) -> str:
        dims = ", ".join(f"{name}={size}" for name, size in zip(self.mesh_dim_names, self.shape))
        return f"DeviceMesh({self.device_type!r}, {dims})"


_current: list[DeviceMesh] = []
_MAX_RANKS = 65536  # the compiler's


def init_device_mesh(device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None,
                     backend_override: Any = None) -> DeviceMesh:
    """torch.distributed's function of this name. Under torchrun it makes the default process group, if there is none. Otherwise
    it needs none: all ranks are threads of this process."""
    if backend_override:
        raise MeshError("backend_override names backends of process groups; the ranks of this mesh exchange tensors by gloo, or are threads")
    shape = tuple(mesh_shape)
    if not shape or not all(type(size) is int and size >= 1 for size in shape):
        raise MeshError(f"mesh_shape must have sizes of at least 1, which are ints; found {mesh_shape!r}")
    if math.prod(shape) > _MAX_RANKS:
        raise MeshError(f"a mesh has at most {_MAX_RANKS} ranks; found {mesh_shape!r}")
    ranks: Any = list(range(math.prod(shape)))
    for size in reversed(shape[1:]):
        ranks = [ranks[i:i + size] for i in range(0, len(ranks), size)]
    mesh = DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
    processes.start()
    return mesh


def read_mesh(mesh: Any) -> DeviceMesh:
    """A mesh from one of this package, one of PyTorch's, or a map of names to sizes such as {"tp": 2}. None is the mesh of the
    innermost `with mesh:`.

    :raises MeshError: it isn't a mesh, or the processes can't run its ranks."""
    found: DeviceMesh = _read_mesh(mesh)
    processes.check_mesh(len(found.layout.ranks))
    return found


def _read_mesh(mesh: Any) -> DeviceMesh:
    if mesh is None:
        mesh = _find_current()
        if mesh is None:
            raise MeshError("no mesh is given, and no 'with mesh:' is active")
    if isinstance(mesh, DeviceMesh):
        return mesh
    if isinstance(mesh, Mapping):
        if not mesh:
            raise MeshError("a mesh has at least one dimension, such as {'tp': 2}")
        return init_device_mesh("cpu", tuple(mesh.values()), mesh_dim_names=tuple(mesh))
    if is_from(mesh, "torch.distributed") and type(mesh).__name__ == "DeviceMesh":
        return _read_torch_mesh(mesh)
    raise MeshError(f"a mesh is a DeviceMesh, or a map of names to sizes such as {{'tp': 2}}; found {mesh!r}")


def is_given(mesh: Any) -> bool:
    """Whether `read_mesh(mesh)` has a mesh to read."""
    return mesh is not None or _find_current() is not None


def _find_current() -> Any:
    """The mesh of the innermost `with mesh:`; None if there is none."""
    if _current:
        return _current[-1]
    module = sys.modules.get("torch.distributed.device_mesh")
    if module is not None:
        with contextlib.suppress(RuntimeError):
            return module._mesh_resources.get_current_mesh()
    return None


def _read_torch_mesh(mesh: Any) -> DeviceMesh:
    if hasattr(mesh, "_get_root_mesh"):
        root = mesh._get_root_mesh()
    else:  # before PyTorch 2.10
        from torch.distributed.device_mesh import _mesh_resources
        root = _mesh_resources.get_root_mesh(mesh)
    whole = DeviceMesh(mesh.device_type, root.mesh, mesh_dim_names=root.mesh_dim_names)
    _remember(whole.layout, root)
    if mesh is root or mesh == root:
        return whole
    names = mesh.mesh_dim_names or ()
    if all(name in whole.mesh_dim_names for name in names):
        return whole[tuple(names)]
    # A mesh that was flattened: PyTorch keeps its ranks, not the dimensions that it has been made of.
    order = whole.mesh_dim_names
    for first in range(len(order)):
        for last in range(first + 1, len(order) + 1):
            part = whole[order[first:last]]
            if mesh.ndim == 1 and part.size() == mesh.size() and _get_first_ranks(root, order[first:last]) == mesh.mesh.tolist():
                return part._flatten(names[0] if names else None)
    raise MeshError(f"the mesh {mesh!r} isn't made of neighboring dimensions of {root!r}")


# PyTorch's mesh of a layout, and the default process group that it was made with.
_torch_meshes: dict[Layout, tuple[Any, Any]] = {}


def _remember(layout: Layout, mesh: Any) -> Any:
    world = sys.modules["torch.distributed"].group.WORLD
    if _torch_meshes.get(layout, (None, None))[1] is not world:
        _torch_meshes[layout] = mesh, world
    return _torch_meshes[layout][0]


def get_torch_mesh(layout: Layout) -> Any:
    """PyTorch's mesh of all ranks: the one that was given to this package, or a new one, which all processes make."""
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import DeviceMesh as TorchMesh
    known, world = _torch_meshes.get(layout, (None, None))
    if known is not None and world is dist.group.WORLD:
        return known
    ranks = torch.tensor(layout.ranks).view([size for _, size in layout.axes])
    made = TorchMesh("cpu", ranks, mesh_dim_names=tuple(name for name, _ in layout.axes))
    return _remember(layout, made)


def _get_first_ranks(root: Any, names: tuple[str, ...]) -> list[int]:
    """The ranks of a sub-mesh that have position 0 in all other dimensions."""
    index = tuple(slice(None) if name in names else 0 for name in root.mesh_dim_names)
    return list(root.mesh[index].reshape(-1).tolist())


def _check_device_type(device_type: str) -> None:
    if device_type != "cpu":
        raise MeshError(f"device_type must be 'cpu'; found {device_type!r}. For CUDA devices, compile a saved program with tp-compile")


def _check_names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if names is None:
        return ("tp",) if count == 1 else tuple(f"dim{i}" for i in range(count))
    names = tuple(names)
    if len(names) != count or len(set(names)) != count:
        raise MeshError(f"mesh_dim_names must have {count} different names, one for each dimension; found {names!r}")
    for name in names:
        if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
            raise MeshError(f"a mesh dimension is named by letters, digits and underscores, a letter first; found {name!r}")
    return names


def _flatten_ranks(mesh: Any) -> tuple[list[int], tuple[int, ...]]:
    """The ranks of nested lists, and the lists' shape."""
    if isinstance(mesh, int):
        return [mesh], ()
    if not isinstance(mesh, (list, tuple)) or not mesh:
        raise MeshError(f"a mesh is a nested list of ranks; found {mesh!r}")
    parts = [_flatten_ranks(part) for part in mesh]
    if any(shape != parts[0][1] for _, shape in parts):
        raise MeshError("the lists of a mesh that are at one depth must have the same length")
    return [rank for ranks, _ in parts for rank in ranks], (len(parts), *parts[0][1])
