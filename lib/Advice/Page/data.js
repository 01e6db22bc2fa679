// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The data, and what all sections do with them: texts of bytes and ranks, groups of equal layers.

const report = JSON.parse(document.getElementById("report").textContent);
/** What tp-explain says about the same program, or null. */
const explanation = JSON.parse(document.getElementById("explanation").textContent);
/** What ranks did in a run, of the ranks that stand for their class, or null. ReportPage.h describes it. */
const measured = JSON.parse(document.getElementById("measured").textContent);
/** What tp-auto-plan found for as many ranks, or null (docs/AutoPlan.md). */
const alternatives = JSON.parse(document.getElementById("other-plans").textContent);
/** What tp-scale-plan says about other numbers of ranks, or null (docs/Prediction.md). */
const scaling = JSON.parse(document.getElementById("other-ranks").textContent);
const prediction = report.prediction;
const axes = report.mesh.axes;

function formatBytes(bytes) {
  return formatScaled(bytes, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
}

function formatExactBytes(bytes) {
  return bytes < 1024 ? `${bytes} bytes` : `${formatBytes(bytes)} (${bytes.toLocaleString("en")} bytes)`;
}

function formatFlops(flops) {
  return formatScaled(flops, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"], 1000);
}

function formatShape(shape, dtype) {
  return `${dtype} ${shape.length ? shape.join("×") : "scalar"}`;
}

/** [0, 1, 2, 5] as "0–2, 5"; more than three equal runs at equal distances as "0–3, 8–11, …, 40–43". */
function formatRanges(numbers) {
  const runs = [];
  for (const number of numbers) {
    const last = runs[runs.length - 1];
    if (last && last[1] + 1 === number)
      last[1] = number;
    else
      runs.push([number, number]);
  }
  const format = ([first, last]) => first === last ? `${first}` : `${first}–${last}`;
  const texts = [];
  for (let begin = 0, end; begin < runs.length; begin = end) {
    const getStep = i => [runs[i][0] - runs[i - 1][0], runs[i][1] - runs[i - 1][1]];
    for (end = begin + 1; end < runs.length && getStep(end).every(step => step === getStep(begin + 1)[0]); ++end);
    const same = runs.slice(begin, end).map(format);
    texts.push(...same.length > 3 ? [same[0], same[1], "…", same[same.length - 1]] : same);
  }
  return texts.join(", ");
}

/** The numbers of a set in strided parts, as docs/Report.md describes them. */
function expandParts(parts) {
  return parts.flatMap(({ offset, sizes, strides }) => sizes.reduce((numbers, size, i) =>
    numbers.flatMap(number => Array.from({ length: size }, (_, index) => number + index * strides[i])), [offset]));
}

/** The ranks of each class, in order; and by rank, the index of its class. */
const ranksOfClass = report.rank_classes.map(({ ranks }) => expandParts(ranks).sort((a, b) => a - b));
const classOfRank = [];
ranksOfClass.forEach((ranks, index) => ranks.forEach(rank => { classOfRank[rank] = index; }));

/** The classes with the same key as one: {ranks, label, item}. `items` has one entry for each class. */
function joinClasses(items, getKey) {
  const groups = groupBy(items.map((item, index) => ({ item, index })), ({ item }) => JSON.stringify(getKey(item)));
  return [...groups.values()].map(group => {
    const ranks = group.flatMap(({ index }) => ranksOfClass[index]).sort((a, b) => a - b);
    return { ranks, label: `${ranks.length === 1 ? "rank" : "ranks"} ${formatRanges(ranks)}`, item: group[0].item };
  });
}

/** The sum over all ranks of a list that has a value for each class. */
function sumOverRanks(values) {
  return sum(values.map((value, index) => value * report.rank_classes[index].count));
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
