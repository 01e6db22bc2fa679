# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Other systems' ways from one sharding to another, written anew from their documentation and papers.

A mesh is a tuple of (name, size), a sharding a tuple with one tuple of axes per tensor dimension, major to minor. An axis
is (name, pre, size): the part of a mesh dimension that is `size` long behind a major part that is `pre` long; the whole
dimension is (name, 1, its size). Costs count elements that all ranks receive together.
"""

import functools
import heapq
import itertools
import math


def get_size(axes):
    return math.prod(size for _, _, size in axes)


def get_indices(mesh, axis):
    """Each rank's index along an axis, ranks in row-major order."""
    name, pre, size = axis
    inner = 1
    for other, extent in reversed(mesh):
        if other == name:
            minor = extent // (pre * size) * inner
            break
        inner *= extent
    return tuple(rank // minor % size for rank in range(math.prod(extent for _, extent in mesh)))


get_indices = functools.lru_cache(maxsize=None)(get_indices)


@functools.lru_cache(maxsize=None)
def get_intervals(mesh, size, axes):
    """What each rank has of a dimension: chunks as torch.chunk makes them, one axis after the other."""
    intervals = [(0, size)] * math.prod(extent for _, extent in mesh)
    for axis in axes:
        indices = get_indices(mesh, axis)
        for rank, (begin, end) in enumerate(intervals):
            chunk = -(-(end - begin) // axis[2])
            intervals[rank] = min(begin + indices[rank] * chunk, end), min(begin + (indices[rank] + 1) * chunk, end)
    return intervals


@functools.lru_cache(maxsize=1 << 16)
def get_blocks(mesh, shape, sharding):
    return list(zip(*(get_intervals(mesh, size, axes) for size, axes in zip(shape, sharding))))


def get_sizes(mesh, shape, sharding):
    return [math.prod(end - begin for begin, end in block) for block in get_blocks(mesh, shape, sharding)]


@functools.lru_cache(maxsize=1 << 18)
def get_missing(mesh, shape, source, target):
    """Elements that ranks need of `target` and don't have of `source`."""
    missing = sum(get_sizes(mesh, shape, target))
    for have, want in zip(get_blocks(mesh, shape, source), get_blocks(mesh, shape, target)):
        missing -= math.prod(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in zip(have, want))
    return missing


def get_kept(mesh, shape, source, target):
    """Elements that a rank has of `source` and needs of `target`, each once. Even blocks are the same or disjoint, and so is what
    they have in common."""
    pairs = zip(get_blocks(mesh, shape, source), get_blocks(mesh, shape, target))
    common = {tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(have, want)) for have, want in pairs}
    return sum(math.prod(max(0, end - begin) for begin, end in block) for block in common)


def get_permuted(mesh, shape, source, target):
    """What a permute moves: the whole block, where it is another one."""
    pairs = zip(get_blocks(mesh, shape, source), get_blocks(mesh, shape, target))
    return sum(math.prod(end - begin for begin, end in want) for have, want in pairs if have != want)


# --- DTensor ----------------------------------------------------------------------------------------------------------

def get_moves(sharding, mesh):
    """One mesh dimension at a time, the last of a tensor dimension: gathered, sliced, or moved by an all-to-all."""
    used = {axis for dim in sharding for axis in dim}
    for d, dim in enumerate(sharding):
        for name, size in mesh:
            if (name, 1, size) not in used:
                yield sharding[:d] + (dim + ((name, 1, size),),) + sharding[d + 1:], 0
        if not dim:
            continue
        gathered = sharding[:d] + (dim[:-1],) + sharding[d + 1:]
        yield gathered, 1
        for e in range(len(sharding)):
            if e != d:
                yield gathered[:e] + (gathered[e] + dim[-1:],) + gathered[e + 1:], 1


def dtensor_optimum(source, mesh, shape):
    """Dijkstra: fewest elements, then collectives, from `source` to every sharding."""
    best, heap = {}, [((0, 0), source)]
    while heap:
        cost, sharding = heapq.heappop(heap)
        if sharding in best:
            continue
        best[sharding] = cost
        for after, collectives in get_moves(sharding, mesh):
            moved = get_missing(mesh, shape, sharding, after)
            heapq.heappush(heap, ((cost[0] + moved, cost[1] + collectives), after))
    return best


def dtensor_greedy(source, target, mesh, shape):
    """From the inner mesh dimension to the outer, what stands in the way of a nested target is replicated, all else
    goes where it belongs; then from the outer to the inner. None where the order isn't that of the mesh."""
    names = [name for name, _ in mesh]
    if any([names.index(a[0]) for a in dim] != sorted(names.index(a[0]) for a in dim) for dim in (*source, *target)):
        return None

    def place(sharding):
        return [next((d for d, dim in enumerate(sharding) if any(a[0] == name for a in dim)), None) for name in names]

    def to_sharding(placements):
        return tuple(tuple((*mesh[a][:1], 1, mesh[a][1]) for a, p in enumerate(placements) if p == d)
                     for d in range(len(shape)))

    current, wanted, moved, collectives = place(source), place(target), 0, 0

    def step(axis, placement):
        nonlocal moved, collectives
        if current[axis] == placement:
            return
        before = to_sharding(current)
        collectives += current[axis] is not None
        current[axis] = placement
        moved += get_missing(mesh, shape, before, to_sharding(current))

    for axis in reversed(range(len(mesh))):
        d = wanted[axis]
        aligned = [a for a in range(axis) if current[a] == d] == [a for a in range(axis) if wanted[a] == d]
        step(axis, d if d is None or aligned else None)
    for axis in range(len(mesh)):
        step(axis, wanted[axis])
    return moved, collectives


# --- Shardy -----------------------------------------------------------------------------------------------------------

def cut(axis, bounds):
    """The parts of an axis between bounds of its mesh dimension."""
    name, pre, size = axis
    inner = sorted(b for b in bounds if pre < b < pre * size and b % pre == 0 and pre * size % b == 0)
    edges = [pre, *inner, pre * size]
    return [(name, begin, end // begin) for begin, end in zip(edges, edges[1:])]


def join(axes):
    """Neighboring parts of a mesh dimension as one."""
    joined = []
    for name, pre, size in axes:
        if joined and joined[-1][0] == name and joined[-1][1] * joined[-1][2] == pre:
            joined[-1] = name, joined[-1][1], joined[-1][2] * size
        else:
            joined.append((name, pre, size))
    return tuple(joined)


def fit(axis, room):
    """The part of an axis that fits into `room`, the part that doesn't, and the room that is left."""
    name, pre, size = axis
    if room <= 1 or (size % room and room % size):
        return None, None, room
    if room >= size:
        return axis, None, room // size
    return (name, pre, room), (name, pre * room, size // room), 1


class Shardy:
    """The greedy order of reshard-to-collectives: slices, one permute, all-to-alls, one all-gather, at most twice. What
    source and target have in common at the front of a dimension stays; of the rest, `have` has to go and `want` to come.
    A dimension's room is how many times more it can be split. Dimensions that don't divide are padded, and padding is
    moved, too."""

    def __init__(self, mesh, shape, source, target):
        self.mesh, self.shape = mesh, shape
        self.moved, self.collectives, self.peak = 0, 0, max(get_sizes(mesh, shape, source))
        bounds = {}
        for name, pre, size in itertools.chain(*source, *target):
            bounds.setdefault(name, set()).update((pre, pre * size))
        self.have, self.want = ([[part for axis in dim for part in cut(axis, bounds[axis[0]])] for dim in sharding]
                                for sharding in (source, target))
        self.dims = range(len(shape))
        self.kept = [[] for _ in self.dims]
        self.drop_common()
        self.sliced = [[] for _ in self.dims]

    def drop_common(self):
        for d in self.dims:
            while self.have[d] and self.want[d] and self.have[d][0] == self.want[d][0]:
                self.kept[d].append(self.have[d].pop(0))
                self.want[d].pop(0)

    def now(self):
        return tuple(join(self.kept[d] + self.have[d]) for d in self.dims)

    def run(self):
        for _ in range(2):
            if not any(self.have) and not any(self.want):
                break
            self.slice()
            if self.should_permute():
                self.step(self.permute, get_permuted)
            for in_place in (True, False):
                for d in self.dims:
                    while self.can_move(d, in_place):
                        self.step(lambda: self.move(d), get_missing)
            self.step(self.gather, get_missing)
        return not any(self.have) and not any(self.want)

    def step(self, act, get_moved):
        before = self.now()
        act()
        if self.now() != before:
            blocks = [math.lcm(get_size(a), get_size(b)) for a, b in zip(before, self.now())]
            padded = tuple(-(-size // n) * n for size, n in zip(self.shape, blocks))
            self.moved += get_moved(self.mesh, padded, before, self.now())
            self.collectives += 1
            self.peak = max(self.peak, *get_sizes(self.mesh, self.shape, self.now()))

    def target_of(self, axis):
        return next(((d, want.index(axis)) for d, want in enumerate(self.want) if axis in want), None)

    def has(self, axis):
        return any(axis in have for have in self.have)

    def split_wanted(self, axis, parts):
        for want in self.want:
            if axis in want:
                i = want.index(axis)
                want[i:i + 1] = parts

    def slice(self):
        room = []
        for have, want in zip(self.have, self.want):
            room.append(get_size(want) // math.gcd(get_size(have), get_size(want)))
        first = self.now()
        # Where an all-to-all will take a run of axes anyway, the axes behind it are sliced beforehand.
        for d in self.dims:
            have = self.have[d]
            if not have or self.want[d] or not self.target_of(have[-1]):
                continue
            to, index = self.target_of(have[-1])
            want = self.want[to]
            more = list(itertools.takewhile(lambda axis: not self.has(axis), want[index + 1:]))
            if self.have[to] or not more:
                continue
            common = 0
            while common < min(len(have), index + 1) and have[-1 - common] == want[index - common]:
                common += 1
            if any(axis in want for axis in have[:len(have) - common]):
                continue
            if self.shape[d] % (get_size(self.kept[d]) * get_size(have) * get_size(more)):
                continue
            room[to] //= get_size(have[len(have) - common:]) * get_size(more)
            self.have[d] += more
        left = []
        for d in self.dims:
            i = 0
            while i < len(self.want[d]):
                axis = self.want[d][i]
                if self.has(axis):
                    i += 1
                    continue
                part, rest, room[d] = fit(axis, room[d])
                if not part:
                    left.append(axis)
                    i += 1
                    continue
                if rest:
                    self.want[d][i:i + 1] = [part, rest]
                    left.append(rest)
                if not self.have[d] and i == 0:
                    self.kept[d].append(self.want[d].pop(0))
                else:
                    self.have[d].append(part)
                    i += 1
                if rest:
                    i += 1
        self.spread(left, room, lambda d, axis: self.have[d].append(axis))
        self.sliced = [axes[len(before):] for before, axes in zip(first, self.now())]

    def spread(self, axes, room, add):
        """Gives axes to the first dimensions that have room."""
        for d in self.dims:
            i = 0
            while i < len(axes) and room[d] > 1:
                part, rest, room[d] = fit(axes[i], room[d])
                if not part:
                    i += 1
                    continue
                axis = axes.pop(i)
                add(d, part)
                if rest:
                    axes.insert(0, rest)
                    self.split_wanted(axis, [part, rest])

    def should_permute(self):
        removable = addable = None
        for d in self.dims:
            have, want = self.have[d], self.want[d]
            if have and want and (have[0][2] % want[0][2] == 0 or want[0][2] % have[0][2] == 0):
                return True
            addable = next((axis for axis in reversed(want) if not self.has(axis)), addable)
            last, last_index, seen = None, 0, set()
            for axis in have:
                found = self.target_of(axis)
                to = found and found[0]
                if found:
                    if (to == d or to in seen) and (last != to or found[1] != last_index + 1):
                        return True
                    seen.add(to)
                    last_index = found[1]
                elif last is not None and not want:
                    return True
                else:
                    removable = axis
                last = to
        return bool(removable and addable and
                    (removable[2] % addable[2] == 0 or addable[2] % removable[2] == 0))

    def permute(self):
        room, spare, kept = [], [], []
        wanted = {axis for want in self.want for axis in want}
        for d in self.dims:
            have, left = self.have[d], get_size(self.have[d])
            total = left
            while left > 1 and self.want[d]:
                part, rest, left = fit(self.want[d][0], left)
                if not part:
                    break
                self.kept[d].append(part)
                self.want[d][:1] = [rest] if rest else []
            room.append(left)
            spare += self.want[d]
            rest, used, replaced = [axis for axis in have if axis not in wanted], total // left, []
            while used > 1 and rest:
                part, more, used = fit(rest[0], used)
                if not part:
                    break
                rest[:1] = [more] if more else []
                replaced.append(part)
            kept.append(rest + replaced)
            self.have[d] = []
        self.spread(spare, room, lambda d, axis: self.have[d].append(axis))
        for d in self.dims:
            front = []
            while kept[d] and room[d] > 1:
                part, more, room[d] = fit(kept[d][0], room[d])
                if not part:
                    break
                kept[d][:1] = [more] if more else []
                front.append(part)
            self.have[d] = front + self.have[d]
        self.spread(list(itertools.chain(*kept)), room, lambda d, axis: self.have[d].insert(0, axis))

    def get_run(self, d):
        """The axes at the end of a dimension that go to one other dimension, and this one."""
        to, run = None, []
        for axis in reversed(self.have[d]):
            found = self.target_of(axis)
            if not found or found[0] == d or to not in (None, found[0]):
                break
            to = found[0]
            run.insert(0, axis)
        return run, to

    def can_move(self, d, in_place):
        run, to = self.get_run(d)
        return bool(run) and (not in_place or self.want[to][:len(run)] == run)

    def move(self, d):
        run, to = self.get_run(d)
        del self.have[d][-len(run):]
        for axis in run:
            if not self.have[to] and self.want[to][0] == axis:
                self.kept[to].append(self.want[to].pop(0))
            else:
                self.have[to].append(axis)

    def gather(self):
        for d in self.dims:
            while self.have[d] and not self.target_of(self.have[d][-1]):
                self.have[d].pop()


def shardy_greedy(mesh, shape, source, target, partial=()):
    """Elements, collectives and the largest block; None where its pass doesn't come to an end. A Partial is reduced
    where it is: an all-reduce, and with slices by the same axes behind it a reduce-scatter."""
    shardy = Shardy(mesh, shape, source, target)
    if not shardy.run():
        return None
    moved, collectives = shardy.moved, shardy.collectives
    if partial:
        parts = get_size(partial)
        first = Shardy(mesh, shape, source, target)
        first.slice()
        rest, scattered = set(partial), []
        for dim, axes in zip(source, first.sliced):
            run = []
            for axis in axes:
                if axis not in rest:
                    break
                rest.remove(axis)
                run.append(axis)
            scattered.append(dim + tuple(run))
        elements = sum(get_sizes(mesh, shape, tuple(scattered)))
        moved += elements * (parts - 1) if not rest else sum(get_sizes(mesh, shape, source)) * 2 * (parts - 1) // parts
        collectives += 1
    return moved, collectives, shardy.peak
