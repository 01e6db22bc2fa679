// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parameters as a tree of modules. Equal layers are one item. Items are made when they are opened.

/** A node is a module with `children`, a parameter with `tensor`, or, with `count`, equal layers that look as the first does. */
function buildTree(tensors) {
  const root = { name: "", children: new Map() };
  for (const tensor of tensors) {
    let node = root;
    for (const part of tensor.fqn.split(".")) {
      node.children ??= new Map();
      if (!node.children.has(part))
        node.children.set(part, { name: part });
      node = node.children.get(part);
    }
    node.tensor = tensor;
  }
  return summarize(root);
}

/** Adds up what is in a node, and joins equal layers. `signature` is the same for nodes that differ only in the name. */
function summarize(node) {
  const { tensor } = node;
  const children = [...(node.children?.values() ?? [])].map(summarize);
  node.bytes = sum(children, child => child.bytes) + (tensor?.bytes_per_rank ?? 0);
  node.parameters = sum(children, child => child.parameters) + (tensor ? 1 : 0);
  node.placements = new Set(children.flatMap(child => [...child.placements]));
  if (tensor)
    node.placements.add(tensor.placements.join("\n"));
  node.signature = JSON.stringify([
    tensor && [tensor.dtype, tensor.shape, tensor.local_shape, tensor.local_shapes_by_class, tensor.placements],
    children.map(child => [child.name, child.signature])]);
  node.children = joinEqual(children);
  return node;
}

function joinEqual(children) {
  const joined = [];
  for (const child of children) {
    const last = joined[joined.length - 1];
    const isLayer = /^\d+$/.test(child.name);
    if (last && isLayer && last.last + 1 === Number(child.name) && last.signature === child.signature) {
      last.last += 1;
      last.count += 1;
      last.bytes += child.bytes;
      last.parameters += child.parameters;
      last.name = `${last.first}–${last.last}`;
    } else {
      joined.push(isLayer ? { ...child, first: Number(child.name), last: Number(child.name), count: 1 } : child);
    }
  }
  return joined;
}

/** The tree widget: one stop of the Tab key, as WAI-ARIA's pattern has it. */
class ParameterTree {
  constructor(element, choose) {
    this.element = element;
    this.choose = choose;
    this.nextId = 0;
    element.addEventListener("keydown", event => this.onKey(event));
    element.addEventListener("click", event => {
      const row = event.target.closest(".row");
      if (row)
        this.activate(row.parentElement);
    });
  }

  fill(tensors, { isOpen }) {
    this.nodes = new Map();
    this.element.replaceChildren(...this.makeItems(buildTree(tensors).children, 1, ""));
    const items = [...this.element.children];
    if (isOpen)
      this.expandAll();
    else
      items.filter(() => items.length === 1).forEach(item => this.expand(item));
    items[0]?.setAttribute("tabindex", "0");
  }

  makeItems(nodes, level, prefix) {
    return nodes.map((node, i) => {
      const id = `item-${this.nextId++}`;
      const fqn = prefix ? `${prefix}.${node.name}` : node.name;
      const item = create("li", {
        role: "treeitem", tabindex: "-1", "aria-level": level, "aria-setsize": nodes.length, "aria-posinset": i + 1,
        "aria-labelledby": id, "aria-selected": node.tensor ? "false" : undefined, "aria-expanded": node.children.length ? "false" : undefined
      }, create("div", { class: "row", id }, ...this.describe(node)));
      this.nodes.set(item, { node, fqn, level });
      return item;
    });
  }

  describe(node) {
    const parts = [create("span", { class: "toggle", "aria-hidden": "true" }), create("span", { class: "fqn" }, node.name)];
    if (node.tensor) {
      parts.push(create("span", {}, formatShape(node.tensor.shape, node.tensor.dtype)), ...makePlacements(node.tensor.placements),
        makeStrip(getBlocks(node.tensor)));
    } else {
      parts.push(create("span", { class: "hint" }, node.count > 1
        ? `${node.count} equal layers, ${formatCount(node.parameters, "parameter")}` : formatCount(node.parameters, "parameter")));
      if (node.placements.size === 1)
        parts.push(...makePlacements([...node.placements][0].split("\n")));
    }
    parts.push(create("span", { class: "size" }, `${formatBytes(node.bytes)} per rank`));
    return parts.filter(part => part !== null);
  }

  expand(item) {
    if (item.getAttribute("aria-expanded") !== "false")
      return;
    const { node, fqn, level } = this.nodes.get(item);
    if (!item.querySelector(":scope > ul"))
      item.append(create("ul", { role: "group" }, ...this.makeItems(node.children, level + 1, fqn)));
    item.lastElementChild.hidden = false;
    item.setAttribute("aria-expanded", "true");
  }

  collapse(item) {
    item.lastElementChild.hidden = true;
    item.setAttribute("aria-expanded", "false");
  }

  expandAll() {
    for (let closed; (closed = this.element.querySelectorAll('[aria-expanded="false"]')).length;)
      closed.forEach(item => this.expand(item));
  }

  activate(item) {
    this.focus(item);
    const { node, fqn } = this.nodes.get(item);
    if (node.tensor) {
      this.element.querySelector('[aria-selected="true"]')?.setAttribute("aria-selected", "false");
      item.setAttribute("aria-selected", "true");
      this.choose(node.tensor, fqn);
    } else if (item.getAttribute("aria-expanded") === "true") {
      this.collapse(item);
    } else {
      this.expand(item);
    }
  }

  focus(item) {
    this.element.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
    item.setAttribute("tabindex", "0");
    item.focus();
  }

  listVisible() {
    return [...this.element.querySelectorAll('[role="treeitem"]')].filter(item => !item.closest("ul[hidden]"));
  }

  onKey(event) {
    const item = event.target.closest('[role="treeitem"]');
    if (!item || event.ctrlKey || event.altKey || event.metaKey)
      return;
    const isExpanded = item.getAttribute("aria-expanded");
    if (event.key === "Enter" || event.key === " ") {
      this.activate(item);
    } else if (event.key === "ArrowRight" && isExpanded === "false") {
      this.expand(item);
    } else if (event.key === "ArrowRight" && isExpanded === "true") {
      this.focus(item.querySelector('[role="treeitem"]'));
    } else if (event.key === "ArrowLeft" && isExpanded === "true") {
      this.collapse(item);
    } else if (event.key === "ArrowLeft") {
      this.focus(item.parentElement.closest('[role="treeitem"]') ?? item);
    } else if (moveFocus(event, this.listVisible())) {
      this.focus(document.activeElement);
    } else {
      return;
    }
    event.preventDefault();
  }
}

/** What a search finds: a part of the FQN, or a pattern with "*". */
function makeFilter(text) {
  const escaped = text.trim().replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*");
  const pattern = new RegExp(text.includes("*") ? `^${escaped}$` : escaped, "i");
  return tensor => pattern.test(tensor.fqn);
}

const MAX_OPEN_MATCHES = 200;

function showParameters() {
  // Programs of one file may share their parameters.
  const tensors = [...groupBy(report.parameters, tensor => tensor.fqn).values()].map(same => same[0]);
  if (!tensors.length)
    return;
  const pane = document.getElementById("blocks");
  const tree = new ParameterTree(document.getElementById("tree"), (tensor, fqn) => pane.replaceChildren(
    create("h3", { class: "fqn" }, fqn),
    create("dl", {}, create("dt", {}, "tensor"), create("dd", {}, formatShape(tensor.shape, tensor.dtype)),
      create("dt", {}, "per rank"), create("dd", {}, formatExactBytes(tensor.bytes_per_rank)),
      create("dt", {}, "placements"), create("dd", {}, ...makePlacements(tensor.placements).flatMap(label => [label, " "]))),
    makeBlockTable(tensor)));
  tree.fill(tensors, { isOpen: false });
  const search = document.getElementById("search"), matches = document.getElementById("matches");
  search.addEventListener("input", () => {
    const found = search.value.trim() ? tensors.filter(makeFilter(search.value)) : tensors;
    matches.textContent = search.value.trim() ? `${found.length} of ${formatCount(tensors.length, "parameter")}` : "";
    tree.fill(found, { isOpen: search.value.trim() !== "" && found.length <= MAX_OPEN_MATCHES });
  });
  window.addEventListener("beforeprint", () => tree.expandAll());
  show("parameters");
}
