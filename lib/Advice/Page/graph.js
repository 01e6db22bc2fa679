// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ops of one layer as a graph, laid out by dagre: what each value is placed as, and what changes the placement.

/**
 * The values of the explanation: {index, op, fqn, name, shape, dtype, placements, operands}. `op` is absent for arguments of the
 * program; `operands` are indices of values. ReportPage.cpp says how they are written.
 */
const values = (explanation?.values.rows ?? []).map(([kind, module, operands, name], index) => {
  const { kinds, fqns } = explanation.values, fqn = fqns[module];
  return { ...kinds[kind], kind, fqn, index, operands, name: name ?? `${kinds[kind].op} (${fqn})` };
});

/** Whether all of a layer's ops read `value`, a parameter or a constant, as a part of themselves. */
function isLeaf(value) {
  return value.op !== undefined && value.operands.length === 0;
}

/** By value: the redistributions of it. */
const movementsOf = groupBy(explanation?.redistributions ?? [], movement => movement.value_index);

/** Movements of equal layers have the same key. */
function getMovementKey({ op, operand, from, to, module, reason, collectives }) {
  return JSON.stringify([op, operand, from, to, getPattern(module), reason.replace(/\d+/g, "*"), collectives]);
}

/** The modules by FQN, each with its values; "" is the whole program. */
function findModules() {
  const modules = new Map([["", []]]);
  for (const value of values) {
    modules.get("").push(value);
    const parts = value.fqn ? value.fqn.split(".") : [];
    for (let length = 1; length <= parts.length; ++length) {
      const fqn = parts.slice(0, length).join(".");
      if (!modules.has(fqn))
        modules.set(fqn, []);
      modules.get(fqn).push(value);
    }
  }
  return modules;
}

/** Modules of equal layers have the same signature, which says all that their graph shows but the layer's number. */
function getSignature(fqn, members) {
  const places = new Map(members.map((value, i) => [value.index, i]));
  const describe = ({ shape, dtype, placements }) => [shape, dtype, placements];
  return JSON.stringify([getPattern(fqn), members.map(value => [value.kind, value.fqn.slice(fqn.length),
    value.operands.map(operand => places.get(operand) ?? (operand === null ? "" : describe(values[operand]))),
    (movementsOf.get(value.index) ?? []).map(getMovementKey)])]);
}

const MAX_GRAPH_OPS = 150;

/** What the user chooses from: {fqns, members}, equal layers as one. Those that are too large to read are left out. */
function findLayers() {
  const modules = [...findModules()].filter(([, members]) => {
    const count = members.filter(value => !isLeaf(value)).length;
    return count > 0 && count <= MAX_GRAPH_OPS;
  });
  return [...groupBy(modules, ([fqn, members]) => getSignature(fqn, members)).values()].map(same =>
    ({ fqns: same.map(([fqn]) => fqn), members: same[0][1] }));
}

/**
 * The graph of a layer: nodes by key, {key, values, leaves, movements, outside}, and edges {from, to, value, movements}. Results of one
 * op are one node. What comes from other layers, or goes there, is a node that is `outside`.
 */
function buildGraph({ members }) {
  const nodes = new Map(), edges = [], inside = new Map();
  const addNode = (key, node) => nodes.has(key) ? nodes.get(key) : nodes.set(key, { key, values: [], leaves: [], movements: [], ...node }).get(key);
  let last = null;
  for (const value of members) {
    if (isLeaf(value))
      continue;
    const isSameOp = last && / result \d+$/.test(value.name) && last.op === value.op && last.fqn === value.fqn
      && last.operands.join() === value.operands.join();
    const node = isSameOp ? inside.get(last.index) : addNode(value.index, { order: value.index });
    node.values.push(value);
    inside.set(value.index, node);
    last = value;
  }
  const getMovements = (value, isUse) => (movementsOf.get(value.index) ?? []).filter(isUse);
  for (const node of [...nodes.values()]) {
    const [first] = node.values;
    // What the op itself communicates in order to run split.
    node.movements = node.values.flatMap(value => getMovements(value, movement => !movement.from));
    first.operands.filter(operand => operand !== null).forEach((operand, i) => {
      const value = values[operand];
      const movements = getMovements(value, movement => movement.from && movement.op_index === first.index && (movement.operand ?? i) === i);
      if (isLeaf(value) && !movements.length) {
        node.leaves.push(value);
        return;
      }
      const source = inside.get(operand) ?? addNode(`from ${operand}`, { values: [value], outside: "from", order: -1 });
      edges.push({ from: source, to: node, value, movements });
    });
  }
  // Values that other layers read, or nobody.
  const read = new Set(edges.map(edge => edge.value.index));
  for (const node of [...nodes.values()].filter(node => !node.outside))
    for (const value of node.values) {
      const movements = getMovements(value, movement => movement.from && !inside.has(movement.op_index));
      if (read.has(value.index) && !movements.length)
        continue;
      edges.push({ from: node, to: addNode(`to ${value.index}`, { values: [value], outside: "to", order: Infinity }), value, movements });
    }
  return { nodes: [...nodes.values()].sort((a, b) => a.order - b.order), edges };
}

/** The name of a value or an op without the part that all of the layer has. */
function shorten(name, fqn) {
  return fqn ? name.replaceAll(`${fqn}.`, "").replace(` (${fqn})`, "") : name;
}

function describeBytes(movement) {
  return `${formatBytes(movement.bytes_per_rank)} per rank${movement.times > 1 ? `, ${movement.times} times` : ""}`;
}

/** The place in the plan, or the op that needs it. */
function getCause(movement) {
  return movement.reason.split(": ")[0];
}

class LayerGraph {
  constructor() {
    this.element = document.getElementById("layer-graph");
    this.pane = document.getElementById("layer-detail");
    this.element.addEventListener("click", event => {
      const option = event.target.closest('[role="option"]');
      if (option)
        this.choose(option);
    });
    this.element.addEventListener("keydown", event => this.onKey(event));
  }

  show(layer) {
    this.fqn = layer.fqns[0];
    const { nodes, edges } = buildGraph(layer);
    const boxes = new Map(nodes.map(node => [node, this.makeNode(node)]));
    const labels = edges.map(edge => this.makeEdge(edge));
    // An edge that changes a placement follows the op that it comes from.
    const order = nodes.flatMap(node => [boxes.get(node), ...labels.filter((_, i) => edges[i].from === node)]);
    this.element.replaceChildren(...order);
    this.options = order.filter(element => element.matches('[role="option"]'));
    this.options[0].tabIndex = 0;
    this.arrange(nodes, edges, boxes, labels);
    this.pane.replaceChildren(create("p", { class: "hint" }, "Nothing is chosen."));
  }

  makeOption(kind, lines, label, describe) {
    const option = create("div", { role: "option", tabindex: "-1", "aria-selected": "false", "aria-label": label, class: kind },
      ...lines.map(line => create("div", { class: "line" }, ...[line].flat())));
    option.describe = describe;
    return option;
  }

  makeNode(node) {
    const [first] = node.values;
    const name = shorten(first.name.replace(/ result \d+$/, ""), this.fqn), type = formatShape(first.shape, first.dtype);
    if (node.outside)
      return this.makeOption("outside", [`${node.outside === "from" ? "from" : "result"} ${name}`], `${node.outside === "from" ? "From" : "Result:"} ${name}, ${type}`,
        () => this.describeValues(node));
    const leaves = node.leaves.filter(leaf => leaf.name !== `${leaf.op} (${leaf.fqn})`).map(leaf =>
      [`${shorten(leaf.name, this.fqn)} `, ...makePlacements(leaf.placements)]);
    const moves = node.movements.map(movement => `${movement.collectives.join(", ")}, ${describeBytes(movement)}`);
    return this.makeOption(moves.length ? "moves" : undefined, [create("strong", {}, name), type, ...leaves, ...moves],
      [`${name}, ${type}`, ...node.leaves.map(leaf => `${shorten(leaf.name, this.fqn)} ${leaf.placements.join(", ")}`), ...moves,
        first.placements.map((text, axis) => `${axes[axis].name}: ${text}`).join(", ")].join("; "),
      () => [...this.describeValues(node), ...this.describeMovements(node.movements)]);
  }

  /** The placements, as a part of the picture; or what changes them, as something to choose. */
  makeEdge({ value, movements }) {
    if (!movements.length)
      return create("span", { class: "edge" }, ...makePlacements(value.placements));
    const [movement] = movements, kinds = movement.collectives.join(", then ");
    return this.makeOption("moves", [create("strong", {}, kinds), [...makePlacements(movement.from), " → ", ...makePlacements(movement.to)],
      describeBytes(movement), create("span", { class: "fqn" }, getCause(movement))],
    `${kinds}, ${movement.from.join(", ")} to ${movement.to.join(", ")}, ${describeBytes(movement)}, ${movement.reason}, in ${movement.module}`,
    () => this.describeMovements(movements));
  }

  arrange(nodes, edges, boxes, labels) {
    const graph = new dagre.graphlib.Graph({ multigraph: true });
    graph.setGraph({ rankdir: "TB", nodesep: 24, edgesep: 12, ranksep: 18, marginx: 6, marginy: 6 });
    for (const node of nodes)
      graph.setNode(node.key, { width: boxes.get(node).offsetWidth, height: boxes.get(node).offsetHeight });
    edges.forEach(({ from, to }, i) =>
      graph.setEdge(from.key, to.key, { width: labels[i].offsetWidth, height: labels[i].offsetHeight, labelpos: "c" }, String(i)));
    dagre.layout(graph);
    const { width, height } = graph.graph();
    const place = (element, { x, y, width, height }) => {
      element.style.left = `${x - width / 2}px`;
      element.style.top = `${y - height / 2}px`;
    };
    for (const node of nodes)
      place(boxes.get(node), graph.node(String(node.key)));
    const draw = (tag, attributes, ...children) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes))
        element.setAttribute(name, value);
      element.append(...children);
      return element;
    };
    const lines = edges.map(({ from, to }, i) => {
      const edge = graph.edge(String(from.key), String(to.key), String(i));
      place(labels[i], edge);
      return draw("path", { d: edge.points.map(({ x, y }, j) => `${j ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(""), "marker-end": "url(#arrow)" });
    });
    const arrow = draw("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      draw("path", { d: "M0 0L8 4L0 8z" }));
    this.element.prepend(draw("svg", { width, height, "aria-hidden": "true" }, draw("defs", {}, arrow), ...lines));
    this.element.style.width = `${width}px`;
    this.element.style.height = `${height}px`;
  }

  describeValues({ values, leaves }) {
    return [create("h3", {}, values[0].name.replace(/ result \d+$/, "")), ...[...values, ...leaves].flatMap(value => create("p", {},
      value === values[0] && values.length === 1 ? "" : `${value.name}: `, formatShape(value.shape, value.dtype), " ",
      ...makePlacements(value.placements).flatMap(label => [label, " "])))];
  }

  describeMovements(movements) {
    return movements.flatMap(movement => {
      const same = explanation.redistributions.filter(other => getMovementKey(other) === getMovementKey(movement));
      const facts = [["value", `${movement.value}, ${formatShape(movement.shape, movement.dtype)}`], ["needed by", `${movement.op}${movement.fqn ? ` (${movement.fqn})` : ""}`],
        ...movement.from ? [["change", `(${movement.from.join(", ")}) to (${movement.to.join(", ")})`]] : [],
        ["cause", movement.reason], ["received by one rank", formatExactBytes(movement.bytes_per_rank)],
        ["by all ranks", `${formatExactBytes(movement.bytes)}, ${movement.bytes === movement.least_bytes ? "the least possible"
          : `the least possible is ${formatExactBytes(movement.least_bytes)}`}`],
        ["in the program", formatCount(sum(same, item => item.times), "time")]];
      return [create("h3", {}, movement.collectives.join(", then ")),
        create("dl", {}, ...facts.flatMap(([term, text]) => [create("dt", {}, term), create("dd", {}, text)])), ...describeReasons(same)];
    });
  }

  choose(option) {
    this.focus(option);
    this.element.querySelector('[aria-selected="true"]')?.setAttribute("aria-selected", "false");
    option.setAttribute("aria-selected", "true");
    this.pane.replaceChildren(...option.describe());
  }

  focus(option) {
    this.options.forEach(other => { other.tabIndex = other === option ? 0 : -1; });
    option.focus();
  }

  onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey)
      return;
    if (event.key === "Enter" || event.key === " ") {
      this.choose(document.activeElement);
      event.preventDefault();
    } else if (moveFocus(event, this.options)) {
      this.focus(document.activeElement);
    }
  }
}

function showGraph() {
  const layers = values.length ? findLayers() : [];
  if (!layers.length)
    return;
  show("graph"); // it needs its size
  const select = document.getElementById("layer"), graph = new LayerGraph();
  const countOps = ({ members }) => members.filter(value => !isLeaf(value) && value.op !== undefined).length;
  select.append(...layers.map((layer, i) => create("option", { value: i }, `${layer.fqns[0] === "" ? "the whole program" : describeModules(layer.fqns)}: ${
    formatCount(countOps(layer), "op")}${layer.fqns.length > 1 ? ` in each of ${layer.fqns.length} equal layers` : ""}`)));
  // At first, the largest layer that there are several of.
  const [best] = [...layers].sort((a, b) => (b.fqns.length > 1) - (a.fqns.length > 1) || b.members.length - a.members.length);
  select.value = layers.indexOf(best);
  const update = () => graph.show(layers[select.value]);
  select.addEventListener("change", update);
  update();
}
