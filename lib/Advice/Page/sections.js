// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sections that are figures and tables, and the order in which all are filled.

function showOverview() {
  const mesh = axes.map(axis => `${axis.name}=${axis.size}`).join(", ");
  document.getElementById("subject").textContent = `Mesh ${mesh}, ${formatCount(report.mesh.ranks, "rank")}.`;
  document.title = `Report, ${mesh}`;
  const totals = Object.entries(report.totals).map(([kind, { count, bytes_per_rank }]) =>
    `${count.toLocaleString("en")} ${kind} (${formatBytes(bytes_per_rank)})`);
  const tensors = [...groupBy(report.parameters, tensor => tensor.fqn).values()].map(same => same[0]);
  const facts = [
    ["received per rank", formatExactBytes(sum(report.collectives, item => item.bytes_per_rank))],
    ["collectives", totals.join(", ") || "none"],
    ["parameters per rank", `${formatExactBytes(sum(tensors, tensor => tensor.bytes_per_rank))} in ${formatCount(tensors.length, "parameter")}`]];
  if (prediction) {
    facts.push(["predicted time", `${formatSeconds(prediction.seconds)} on ${prediction.machine.name}`]);
    const memory = prediction.by_class.map(rank => rank.memory?.total ?? 0);
    const capacity = prediction.machine.device.memory_capacity;
    if (Math.max(...memory) > 0)
      facts.push(["memory", `${formatExactBytes(Math.max(...memory))} on the rank that needs most`
        + (capacity ? `, of ${formatBytes(capacity)}` : "")]);
  }
  if (explanation) {
    facts.push(["as explained", `${formatCount(explanation.trials, "edit")} tried${explanation.trials_cut_short ? ", not all that there are" : ""}`]);
  }
  document.getElementById("totals").append(...facts.flatMap(([term, text]) => [create("dt", {}, term), create("dd", {}, text)]));
  show("overview");
}

function showInterface() {
  const tables = [["Inputs", report.inputs], ["Outputs", report.outputs]].filter(([, tensors]) => tensors.length).map(([title, tensors]) =>
    makeTable(title, [{ title: "Name" }, { title: "Tensor" }, { title: "Placements" }, { title: "Of rank 0" }, { title: "Bytes per rank", number: true }],
      tensors.map(tensor => [create("span", { class: "fqn" }, tensor.name || "(no name)"), formatShape(tensor.shape, tensor.dtype),
        create("span", {}, ...makePlacements(tensor.placements).flatMap(label => [label, " "])), tensor.local_shape.join("×") || "scalar",
        formatBytes(tensor.bytes_per_rank)])));
  if (tables.length)
    show("interface", ...tables);
}

function showDimensions() {
  const groups = [...groupBy(report.collectives, item => item.mesh_dim)];
  if (!groups.length)
    return;
  const getBytes = items => sum(items, item => item.bytes_per_rank);
  showWithBars("dimensions", "Received per rank", {
    label: "Bytes that a rank receives in collectives, by mesh dimension", labels: groups.map(([dim]) => dim || "none"),
    series: [{ label: "bytes", values: groups.map(([, items]) => getBytes(items)) }], format: formatBytes, axis: "bytes received per rank"
  }, makeTable("Collectives by mesh dimension", [{ title: "Over" }, { title: "Collectives", number: true }, { title: "Kinds" },
    { title: "Bytes per rank", number: true }, { title: "Of all ranks together", number: true }],
    groups.map(([dim, items]) => [dim || "none", items.length.toLocaleString("en"),
      [...groupBy(items, item => item.kind)].map(([kind, same]) => `${same.length} ${kind}`).join(", "),
      formatBytes(getBytes(items)), formatBytes(sum(items, item => sumOverRanks(item.bytes_by_class)))])));
}

function showTime() {
  if (!prediction)
    return;
  const ranks = joinClasses(prediction.by_class, rank =>
    [rank.compute_seconds, rank.collective_seconds, rank.waiting_seconds, rank.flops, rank.bytes_touched, rank.bytes_received]);
  const kinds = [["compute", "compute_seconds"], ["collectives", "collective_seconds"], ["waiting", "waiting_seconds"]];
  showWithBars("time", "By rank", {
    label: `Predicted seconds of each rank on ${prediction.machine.name}: compute, collectives and waiting`,
    labels: ranks.map(({ label }) => label), format: formatSeconds, axis: "time",
    series: kinds.map(([label, key]) => ({ label, values: ranks.map(({ item }) => item[key]) }))
  }, makeTable(`Predicted on ${prediction.machine.name}`, [{ title: "Ranks" }, ...["Total", "Compute", "Collectives", "Waiting", "FLOPs", "Bytes touched",
    "Bytes received"].map(title => ({ title, number: true }))],
    ranks.map(({ ranks, item }) => [formatRanges(ranks), formatSeconds(item.seconds), ...kinds.map(([, key]) => formatSeconds(item[key])),
      formatFlops(item.flops), formatBytes(item.bytes_touched), formatBytes(item.bytes_received)])));
  for (const program of prediction.programs)
    showProgram(program, prediction.programs.length > 1
      ? `, ranks ${formatRanges(program.classes.flatMap(index => ranksOfClass[index]).sort((a, b) => a - b))}` : "");
}

const MAX_CHART_MODULES = 12;

function showProgram(program, ofRanks) {
  const getSeconds = items => sum(items, item => item.seconds);
  const modules = [...groupBy(program.modules, module => getPattern(module.fqn)).values()].sort((a, b) => getSeconds(b) - getSeconds(a));
  const total = getSeconds(program.modules);
  const top = modules.slice(0, MAX_CHART_MODULES);
  const name = items => describeModules(items.map(module => module.fqn));
  if (top.length)
    showWithBars("time", `By module${ofRanks}`, {
      label: "Predicted seconds of the modules that take most", labels: top.map(name), format: formatSeconds, axis: "time, of all equal layers together",
      series: [["compute", "compute_seconds"], ["collectives", "collective_seconds"]].map(([label, key]) =>
        ({ label, values: top.map(items => sum(items, item => item[key])) }))
    }, makeTable(`Modules by time${ofRanks}; equal layers are one line`, [{ title: "Module", wide: true }, ...["Count", "Time", "Share", "Compute",
      "Collectives", "FLOPs", "Bytes touched", "Bytes received"].map(title => ({ title, number: true }))],
      modules.map(items => [create("span", { class: "fqn" }, name(items)), items.length.toLocaleString("en"), formatSeconds(getSeconds(items)),
        `${(100 * getSeconds(items) / (total || 1)).toFixed(1)} %`, formatSeconds(sum(items, item => item.compute_seconds)),
        formatSeconds(sum(items, item => item.collective_seconds)), formatFlops(sum(items, item => item.flops)),
        formatBytes(sum(items, item => item.bytes_touched)), formatBytes(sum(items, item => item.bytes_received))])));
  showRoofline(program, ofRanks);
  if (program.ops.length)
    show("time", create("h3", {}, `By op${ofRanks}`), makeTable("Ops by time, without collectives", [{ title: "Op" },
      ...["Count", "Time", "FLOPs", "Bytes touched"].map(title => ({ title, number: true }))],
      [...program.ops].sort((a, b) => b.seconds - a.seconds).map(op => [create("code", {}, op.op), op.count.toLocaleString("en"),
        formatSeconds(op.seconds), formatFlops(op.flops), formatBytes(op.bytes_touched)])));
}

function showMemory() {
  if (!prediction?.by_class.some(rank => rank.memory))
    return;
  const kinds = ["parameters", "inputs", "outputs", "arena"];
  const ranks = joinClasses(prediction.by_class, rank => rank.memory);
  const capacity = prediction.machine.device.memory_capacity;
  showWithBars("memory", "By rank", {
    label: "Bytes that each rank allocates: parameters, inputs, outputs and arena", labels: ranks.map(({ label }) => label),
    format: formatBytes, axis: "bytes", series: kinds.map(kind => ({ label: kind, values: ranks.map(({ item }) => item.memory[kind]) }))
  }, makeTable("Memory by rank", [{ title: "Ranks" }, ...kinds.map(title => ({ title, number: true })), { title: "Total", number: true },
    ...capacity ? [{ title: "Of the device", number: true }] : []],
    ranks.map(({ ranks, item: { memory } }) => [formatRanges(ranks), ...kinds.map(kind => formatBytes(memory[kind])), formatBytes(memory.total),
      ...capacity ? [`${(100 * memory.total / capacity).toPrecision(2)} %`] : []])));
}

const MAX_PEAK_VALUES = 40;

/** What lives in the arena while the program runs. */
function showArena() {
  const arena = prediction?.arena;
  if (!arena)
    return;
  const most = arena.times.reduce((a, b) => b.bytes > a.bytes ? b : a);
  const values = [...arena.peak.values].sort((a, b) => b.bytes - a.bytes);
  const table = makeTable(`What lives at the peak, ${formatExactBytes(most.bytes)}, while ${most.fqn || "an op without a module"} computes, op ${
    arena.peak.op.toLocaleString("en")} of ${arena.ops.toLocaleString("en")}`,
    [{ title: "Computed in", wide: true }, { title: "By" }, ...["Bytes", "Share", "From op", "To op"].map(title => ({ title, number: true }))],
    values.slice(0, MAX_PEAK_VALUES).map(value => [create("span", { class: "fqn" }, value.fqn || "(no module)"), create("code", {}, value.op || "—"),
      formatBytes(value.bytes), `${(100 * value.bytes / most.bytes).toFixed(1)} %`, value.first.toLocaleString("en"), value.last.toLocaleString("en")]));
  if (values.length > MAX_PEAK_VALUES)
    table.append(create("p", {}, `${values.length - MAX_PEAK_VALUES} smaller values aren't listed.`));
  showWithChart("memory", "The arena over time", makeLines({
    label: "Bytes that live in the arena, by op of the program", formatX: value => value.toLocaleString("en"), formatY: formatBytes,
    axisX: "op of the program", axisY: "bytes that live",
    series: [{ label: "live", isStepped: true, points: arena.times.map(({ op, bytes, fqn }) => ({ x: op, y: bytes, text: fqn })) }]
  }), table);
}

function showLinks() {
  const sections = [...document.querySelectorAll("main > section:not([hidden])")];
  document.getElementById("links").append(...sections.map(section =>
    create("li", {}, create("a", { href: `#${section.id}` }, section.querySelector("h2").textContent))));
}

showOverview();
showParameters();
showInterface();
showCollectives();
showGraph();
showDimensions();
showTime();
showTimeline();
showMemory();
showArena();
showAlternatives();
showScaling();
showLinks();
