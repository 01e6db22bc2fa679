// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The data, and what all sections do with them: texts of numbers, groups of equal layers, tables.

const report = JSON.parse(document.getElementById("report").textContent);
/** What tp-explain says about the same program, or null. */
const explanation = JSON.parse(document.getElementById("explanation").textContent);
const axes = report.mesh.axes;

/** An element. All text of the data passes here, as text and never as markup. */
function create(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

function show(id, ...children) {
  const section = document.getElementById(id);
  section.append(...children);
  section.hidden = false;
}

function formatCount(count, noun, plural = `${noun}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? noun : plural}`;
}

function formatScaled(value, units, base) {
  let unit = 0;
  while (Math.abs(value) >= base && unit + 1 < units.length) {
    value /= base;
    ++unit;
  }
  return `${Number.isInteger(value) ? value : Number(value.toPrecision(3))} ${units[unit]}`;
}

function formatBytes(bytes) {
  return formatScaled(bytes, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
}

function formatExactBytes(bytes) {
  return bytes < 1024 ? `${bytes} bytes` : `${formatBytes(bytes)} (${bytes.toLocaleString("en")} bytes)`;
}

function formatFlops(flops) {
  return formatScaled(flops, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"], 1000);
}

function formatSeconds(seconds) {
  return seconds === 0 ? "0 s" : seconds >= 1 ? `${Number(seconds.toPrecision(3))} s`
    : formatScaled(seconds * 1e9, ["ns", "µs", "ms"], 1000);
}

function formatShape(shape, dtype) {
  return `${dtype} ${shape.length ? shape.join("×") : "scalar"}`;
}

/** [0, 1, 2, 5] as "0–2, 5". */
function formatRanges(numbers) {
  const runs = [];
  for (const number of numbers) {
    const last = runs[runs.length - 1];
    if (last && last[1] + 1 === number)
      last[1] = number;
    else
      runs.push([number, number]);
  }
  return runs.map(([first, last]) => first === last ? `${first}` : `${first}–${last}`).join(", ");
}

function sum(items, get = item => item) {
  return items.reduce((total, item) => total + get(item), 0);
}

/** The items by key, in order of their first appearance. */
function groupBy(items, getKey) {
  const groups = new Map();
  for (const item of items) {
    const key = getKey(item);
    if (!groups.has(key))
      groups.set(key, []);
    groups.get(key).push(item);
  }
  return groups;
}

/** An FQN with "*" for each index of a layer. */
function getPattern(fqn) {
  return fqn.replace(/(^|[., ])\d+(?=[., ]|$)/g, "$1*");
}

/** The FQNs of one pattern as one text: with the indices, if there is only one of them. */
function describeModules(fqns) {
  const unique = [...new Set(fqns)];
  if (unique.length === 1)
    return unique[0] || "(no module)";
  const pattern = getPattern(unique[0]);
  const parts = pattern.split("*");
  if (parts.length !== 2)
    return pattern;
  const indices = unique.map(fqn => Number(fqn.slice(parts[0].length, fqn.length - parts[1].length))).sort((a, b) => a - b);
  return `${parts[0]}[${formatRanges(indices)}]${parts[1]}`;
}

/** `columns`: {title, number?, wide?}; cells are texts or nodes. */
function makeTable(caption, columns, rows) {
  const getClass = column => column.number ? "number" : column.wide ? "wide" : undefined;
  const head = create("tr", {}, ...columns.map(column => create("th", { scope: "col", class: getClass(column) }, column.title)));
  const body = rows.map(row => create("tr", {}, ...row.map((cell, i) => create("td", { class: getClass(columns[i]) }, cell))));
  return create("div", { class: "scroll" },
    create("table", {}, create("caption", {}, caption), create("thead", {}, head), create("tbody", {}, ...body)));
}

/** Lets the arrow keys, Home and End move the focus in a list. */
function moveFocus(event, items) {
  const steps = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
  const step = steps[event.key];
  if (step === undefined || !items.length)
    return false;
  const index = items.indexOf(document.activeElement) + step;
  items[Math.max(0, Math.min(items.length - 1, index))].focus();
  event.preventDefault();
  return true;
}
