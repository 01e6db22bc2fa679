// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elements, texts of numbers, tables.

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

function formatSeconds(seconds) {
  return seconds === 0 ? "0 s" : seconds >= 1 ? `${Number(seconds.toPrecision(3))} s`
    : formatScaled(seconds * 1e9, ["ns", "µs", "ms"], 1000);
}

function sum(items, get = item => item) {
  return items.reduce((total, item) => total + get(item), 0);
}

/** `columns`: {title, number?, wide?}; cells are texts or nodes. */
function makeTable(caption, columns, rows) {
  const getClass = column => column.number ? "number" : column.wide ? "wide" : undefined;
  const head = create("tr", {}, ...columns.map(column => create("th", { scope: "col", class: getClass(column) }, column.title)));
  const body = rows.map(row => create("tr", {}, ...row.map((cell, i) => create("td", { class: getClass(columns[i]) }, cell))));
  return create("div", { class: "scroll" },
    create("table", {}, create("caption", {}, caption), create("thead", {}, head), create("tbody", {}, ...body)));
}
