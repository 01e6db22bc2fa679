// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The collectives, each with what caused it, what moves, and the edits of the plan that remove it.

const predicted = new Map((report.prediction?.collectives ?? []).map(item => [item.id, item]));

function isSameCause(collective, item, module) {
  return collective.fqn.split(/,\s*/).includes(module) && collective.reason.includes(item.reason);
}

/** "2 KiB less", "64 bytes more". */
function formatChange(change, format, more = "more", less = "less") {
  return `${format(Math.abs(change))} ${change < 0 ? less : more}`;
}

function describeChange({ bytes, collectives }) {
  const parts = [formatChange(bytes, formatExactBytes)];
  if (collectives)
    parts.push(formatChange(collectives, count => formatCount(count, "collective")));
  return parts.join(", ");
}

function describeChain(chain) {
  const begin = chain.source ? `${chain.source.what} ${chain.source.placement} [${chain.source.by}]` : "chosen by cost";
  const steps = chain.steps.map(step => [step.op, step.fqn && `(${step.fqn})`, step.split, step.placement].filter(Boolean).join(" "));
  if (chain.left_out)
    steps.unshift(`${formatCount(chain.left_out, "op")} left out`);
  return [begin, ...steps].join(" → ");
}

function describeConflict(conflict) {
  return create("li", {}, `Over ${conflict.mesh_dim}: ${conflict.verdict}`, create("ul", {},
    create("li", {}, `lost: ${conflict.lost.placement}, from ${describeChain(conflict.lost)}`),
    create("li", {}, `won: ${conflict.won.placement}, from ${describeChain(conflict.won)}`)));
}

/** An edit of the plan, and what the whole program then moves, holds and computes. */
function describeEdit(edit) {
  const effects = [];
  if (edit.parameter_bytes_per_rank)
    effects.push(`each rank holds ${formatChange(edit.parameter_bytes_per_rank, formatExactBytes)} of parameters`);
  if (Math.abs(edit.work - 1) >= 0.005)
    effects.push(`each rank computes ${Number(edit.work.toFixed(2))} times as much`);
  effects.push(...edit.interface);
  const what = { replace: `Replace ${edit.place} by`, remove: `Remove ${edit.place}`, add: `Add at ${edit.place}` };
  return create("li", {}, what[edit.action] ?? `${edit.action} ${edit.place}`,
    ...edit.text ? [" ", create("code", {}, edit.text)] : [], ": ", create("span", { class: "saving" }, describeChange(edit)),
    ` in the whole program, all ranks together; ${edit.removes ? "removes this" : "reduces this"}${effects.length ? `; ${effects.join("; ")}` : ""}`);
}

function describeAlternative(alternative) {
  const placements = [...alternative.operands].join(", ") + " → " + alternative.results.join(", ");
  return create("li", {}, `${alternative.split}, ${placements}: ${describeChange(alternative)}`);
}

function unique(items) {
  return [...groupBy(items, item => JSON.stringify(item)).values()].map(same => same[0]);
}

function describeExplanation(collectives) {
  const items = explanation.redistributions.filter(item => collectives.some(each => isSameCause(each, item, item.module)));
  return items.length ? describeReasons(items) : [create("p", { class: "hint" }, "The explanation has nothing about it.")];
}

/** `items`: redistributions of the explanation that differ only in the layer. */
function describeReasons(items) {
  // They have equal explanations but for their names: the first one stands for them.
  const [first] = items;
  const parts = [];
  if (first.conflicts.length)
    parts.push(create("h3", {}, "Why"), create("ul", {}, ...first.conflicts.map(describeConflict)));
  const edits = unique(items.flatMap(item => item.edits ?? []));
  parts.push(create("h3", {}, "Edits"), edits.length ? create("ul", { class: "edits" }, ...edits.map(describeEdit))
    : create("p", {}, "No edit that was tried moves less."));
  if (first.alternatives.length)
    parts.push(create("h3", {}, `Otherwise, if only ${first.choice.op} ran in another way, all ranks together`),
      create("ul", {}, ...first.alternatives.map(describeAlternative)));
  return parts;
}

function describeRedistribution(item) {
  const bound = item.bytes_received_total === item.lower_bound_total ? "the least possible"
    : `the least possible is ${formatExactBytes(item.lower_bound_total)}`;
  const steps = item.steps.map(step => `${step.kind} over ${step.mesh_dim}`).join(", then ");
  return create("li", {}, `(${item.from_placements.join(", ")}) to (${item.to_placements.join(", ")}) of `
    + `${formatShape(item.shape, item.dtype)}: all ranks receive ${formatExactBytes(item.bytes_received_total)}, ${bound}. ${steps}`);
}

function makeDetail(collectives) {
  const [first] = collectives;
  const facts = [["module", [...new Set(collectives.map(item => item.fqn))].slice(0, 1)[0] + (collectives.length > 1
    ? `, and ${collectives.length - 1} more` : "")],
    ["cause", first.reason],
    ["operand, on rank 0", formatShape(first.shape, first.dtype)],
    ["result, on rank 0", formatShape(first.result_shape, first.dtype)],
    ["group", formatCount(first.group_size, "rank")]];
  for (const { label, item: bytes } of joinClasses(first.bytes_by_class, bytes => bytes))
    facts.push([`received by ${label}`, formatExactBytes(bytes)]);
  if (predicted.has(first.id))
    facts.push(["predicted, each", formatSeconds(predicted.get(first.id).seconds)]);
  const parts = [create("dl", {}, ...facts.flatMap(([term, text]) => [create("dt", {}, term), create("dd", {}, text)]))];
  const changes = report.redistributions.filter(item => isSameCause(first, item, item.fqn));
  if (changes.length)
    parts.push(create("h3", {}, "Changes of placement that it makes"),
      create("ul", {}, ...unique(changes.map(({ fqn, reason, ...rest }) => rest)).map(describeRedistribution)));
  if (explanation)
    parts.push(...describeExplanation(collectives));
  return parts;
}

/** Two rows of the table: the collectives of equal layers, and, when it is opened, what there is to say about them. */
function makeRows(collectives, index, columns) {
  const [first] = collectives, id = `collective-${index}`;
  const detail = create("tr", { class: "detail", id, hidden: true }, create("td", { colspan: columns }));
  const button = create("button", { type: "button", "aria-expanded": "false", "aria-controls": id }, first.kind);
  const open = isOpen => {
    if (isOpen && !detail.firstChild.hasChildNodes())
      detail.firstChild.append(...makeDetail(collectives));
    detail.hidden = !isOpen;
    button.setAttribute("aria-expanded", isOpen);
  };
  button.addEventListener("click", () => open(detail.hidden));
  window.addEventListener("beforeprint", () => open(true));
  const cells = [
    [button], [first.mesh_dim], [collectives.length.toLocaleString("en"), "number"],
    [formatBytes(first.bytes_per_rank), "number"], [formatBytes(sum(collectives, item => item.bytes_per_rank)), "number"],
    ...predicted.size ? [[formatSeconds(sum(collectives, item => predicted.get(item.id)?.seconds ?? 0)), "number"]] : [],
    [create("span", { class: "fqn" }, describeModules(collectives.map(item => item.fqn))), "wide"], [first.reason, "wide"]];
  return [create("tr", {}, ...cells.map(([content, kind]) => create("td", { class: kind }, content))), detail];
}

function showCollectives() {
  if (!report.collectives.length)
    return;
  const groups = [...groupBy(report.collectives, item => JSON.stringify(
    [item.kind, item.mesh_dim, item.dtype, item.shape, item.result_shape, item.bytes_per_rank, getPattern(item.fqn), item.reason])).values()];
  const getTotal = group => sum(group, item => item.bytes_per_rank);
  groups.sort((a, b) => getTotal(b) - getTotal(a));
  const titles = [["Kind"], ["Over"], ["Count", "number"], ["Bytes each", "number"], ["Bytes together", "number"],
    ...predicted.size ? [["Time together", "number"]] : [], ["Module"], ["Cause"]];
  const head = create("tr", {}, ...titles.map(([title, kind]) => create("th", { scope: "col", class: kind }, title)));
  const body = create("tbody", {}, ...groups.flatMap((group, i) => makeRows(group, i, titles.length)));
  body.addEventListener("keydown", event => {
    if (event.target.matches("button"))
      moveFocus(event, [...body.querySelectorAll("button[aria-controls]")]);
  });
  if (!explanation)
    document.getElementById("collectives-hint").append(
      " Edits of the plan that move less are there if the page was made with an explanation.");
  show("collectives", create("div", { class: "scroll" }, create("table", {},
    create("caption", {}, `Collectives by cause, those with most bytes first: what the rank that receives most receives${predicted.size ? ", and the predicted time" : ""}`),
    create("thead", {}, head), body)));
}
