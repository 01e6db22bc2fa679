// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which rank holds which block of a tensor. Blocks follow torch.chunk, as docs/Report.md says.

/** A placement as the report spells it: {kind, text}, and for a shard {dim, segments, splitFactor}. */
function parsePlacement(text) {
  if (text === "Replicate")
    return { kind: "replicate", text };
  if (text.startsWith("Partial("))
    return { kind: "partial", text };
  const match = /^(?:Shard\((\d+)|_StridedShard\((\d+), split_factor=(\d+))(?:, segments=\[([\d, ]+)\])?\)$/.exec(text);
  if (!match)
    return { kind: "shard", text, dim: null };
  return { kind: "shard", text, dim: Number(match[1] ?? match[2]), splitFactor: Number(match[3] ?? 1),
    segments: match[4]?.split(",").map(Number) };
}

function getCoordinates(rank) {
  const coordinates = [];
  for (let axis = axes.length; axis-- > 0;) {
    coordinates[axis] = rank % axes[axis].size;
    rank = Math.floor(rank / axes[axis].size);
  }
  return coordinates;
}

function getChunk([begin, end], count, index) {
  const size = Math.ceil((end - begin) / count);
  const first = Math.min(end, begin + index * size);
  return [first, Math.min(end, first + size)];
}

/**
 * The axes that split a dimension, major first. Axes that come later in the mesh and are major to a strided one have the
 * product `splitFactor`.
 */
function orderAxes(split) {
  const order = [];
  for (const each of [...split].reverse()) {
    let position = 0;
    for (let product = 1; product < each.splitFactor; ++position) {
      if (position === order.length)
        return null;
      product *= axes[order[position].axis].size;
    }
    order.splice(position, 0, each);
  }
  return order;
}

/**
 * The distinct blocks of a tensor, each with its `ranks` and with `dims`: lists of [begin, end] by dimension. Null if the
 * placements don't say it, or don't agree with the local shapes of the report.
 */
function getBlocks(tensor) {
  const key = JSON.stringify([tensor.shape, tensor.placements, tensor.local_shape, tensor.local_shapes_by_class]);
  if (!knownBlocks.has(key))
    knownBlocks.set(key, findBlocks(tensor));
  return knownBlocks.get(key);
}

/** Tensors of equal layers have equal blocks. */
const knownBlocks = new Map();

function findBlocks(tensor) {
  const placements = tensor.placements.map((text, axis) => ({ axis, ...parsePlacement(text) }));
  const shards = placements.filter(placement => placement.kind === "shard");
  if (shards.some(shard => shard.dim === null))
    return null;
  const orders = tensor.shape.map((_, dim) => orderAxes(shards.filter(shard => shard.dim === dim)));
  if (orders.includes(null))
    return null;
  const blocks = new Map();
  for (let rank = 0; rank < report.mesh.ranks; ++rank) {
    const coordinates = getCoordinates(rank);
    const dims = tensor.shape.map((size, dim) => {
      let begin = 0;
      const segments = orders[dim].find(axis => axis.segments)?.segments ?? [size];
      return segments.map(length => {
        const whole = [begin, begin += length];
        return orders[dim].reduce((chunk, { axis }) => getChunk(chunk, axes[axis].size, coordinates[axis]), whole);
      });
    });
    const shape = dims.map(intervals => sum(intervals, ([first, last]) => last - first));
    const expected = tensor.local_shapes_by_class ? tensor.local_shapes_by_class[classOfRank[rank]] : tensor.local_shape;
    if (shape.join() !== expected.join())
      return null;
    const key = JSON.stringify(dims);
    if (!blocks.has(key))
      blocks.set(key, { dims, shape, ranks: [] });
    blocks.get(key).ranks.push(rank);
  }
  return [...blocks.values()];
}

/** "[0:512, :]", as one indexes in Python; segments are joined by "+". */
function formatBlock(block, shape) {
  const dims = block.dims.map((intervals, dim) => intervals.length === 1 && intervals[0][1] - intervals[0][0] === shape[dim]
    ? ":" : intervals.map(([begin, end]) => `${begin}:${end}`).join("+"));
  return `[${dims.join(", ")}]`;
}

/** The placements as labels: their kinds differ in text and border as well as in color. */
function makePlacements(placements) {
  return placements.map((text, axis) =>
    create("span", { class: `placement ${parsePlacement(text).kind}` }, `${axes[axis].name}: ${text}`));
}

const MAX_STRIP_BLOCKS = 16;

/** The blocks side by side, each with the ranks that hold it; null if there is only one block. */
function makeStrip(blocks) {
  if (!blocks || blocks.length < 2 || blocks.length > MAX_STRIP_BLOCKS)
    return null;
  return create("span", { class: "strip", title: "the ranks that hold each block" }, ...blocks.map((block, i) =>
    create("span", { style: `background: var(--block-${i % 8})` }, formatRanges(block.ranks))));
}

const MAX_TABLE_BLOCKS = 256;

function makeBlockTable(tensor) {
  const blocks = getBlocks(tensor);
  if (!blocks)
    return create("p", { class: "hint" }, `Blocks of such placements aren't shown; rank 0 holds ${formatShape(tensor.local_shape, tensor.dtype)}.`);
  const table = makeTable(`${formatCount(blocks.length, "block")}, as Python indexes the tensor`,
    [{ title: "Ranks" }, { title: "Block", wide: true }, { title: "Shape" }],
    blocks.slice(0, MAX_TABLE_BLOCKS).map(block => [formatRanges(block.ranks), create("code", {}, formatBlock(block, tensor.shape)),
      block.shape.join("×") || "scalar"]));
  if (blocks.length > MAX_TABLE_BLOCKS)
    table.append(create("p", {}, `${blocks.length - MAX_TABLE_BLOCKS} further blocks aren't listed.`));
  return table;
}
