// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the plan costs beside other plans, and on other numbers of ranks.

/** The cost of the plan, with the members that other plans have. */
function getOwnCost() {
  return {
    seconds: prediction.seconds, memory_bytes: Math.max(...prediction.by_class.map(rank => rank.memory.total)),
    bytes_received: sumOverRanks(prediction.by_class.map(rank => rank.bytes_received)), collectives: report.collectives.length
  };
}

function formatRatio(value, own) {
  return own > 0 ? `${Number((value / own).toPrecision(3))}×` : "—";
}

const COSTS = [["Predicted time", "seconds", formatSeconds], ["Memory per rank", "memory_bytes", formatBytes],
  ["Received by all ranks", "bytes_received", formatBytes]];

function showAlternatives() {
  if (!alternatives)
    return;
  const own = getOwnCost(), count = alternatives.alternatives.length;
  const describe = ({ axes }) => axes.map(({ name, size, role }) => `${name}=${size} ${role}`).join(", ");
  const plans = [{ label: "this plan", ...own }, ...[alternatives, ...alternatives.alternatives].map((plan, i) =>
    ({ ...plan, label: `${i + 1}: ${describe(plan)}` }))];
  const table = makeTable(`This plan and ${formatCount(count + 1, "other")} on ${prediction.machine.name}. The ratios are to this plan`,
    [{ title: "Plan", wide: true }, ...COSTS.flatMap(([title]) => [title, "Ratio"]).map(title => ({ title, number: true })),
      { title: "Collectives", number: true }],
    plans.map((plan, i) => [plan.plan ? create("details", {}, create("summary", {}, plan.label), create("pre", {}, plan.plan)) : plan.label,
      ...COSTS.flatMap(([, key, format]) => [format(plan[key]), i ? formatRatio(plan[key], own[key]) : ""]),
      plan.collectives.toLocaleString("en")]));
  const charts = COSTS.map(([title, key, format]) => ({ title, chart: makeBars({
    label: `${title} of this plan and of others`, labels: plans.map(({ label }) => label), format, axis: title.toLowerCase(),
    series: [{ label: title, values: plans.map(plan => plan[key]) }]
  }) }));
  show("alternatives", ...charts.flatMap(({ title, chart }) => [create("h3", {}, title), chart.figure]), table);
  charts.forEach(({ chart }) => chart.draw());
}

/** "tp, while dp = 2" */
function describeVaried(axis) {
  const others = axes.filter(({ name }) => name !== axis).map(({ name, size }) => `${name} = ${size}`);
  return others.length ? `${axis}, while ${others.join(", ")}` : axis;
}

const MAX_CURVES = 4;

function showScaling() {
  const curves = scaling?.curves.slice(0, MAX_CURVES) ?? [];
  if (!curves.length)
    return;
  const formatRanks = value => value.toLocaleString("en");
  const charts = COSTS.slice(0, 2).map(([title, key, format]) => ({ title, chart: makeLines({
    label: `${title} by the number of ranks`, type: "logarithmic", formatX: formatRanks, formatY: format, axisX: "ranks", axisY: title.toLowerCase(),
    ticksX: [...new Set(curves.flatMap(({ points }) => points.map(({ ranks }) => ranks)))].sort((a, b) => a - b),
    series: curves.map(({ axis, points }) => ({
      label: `varied: ${describeVaried(axis)}`, points: points.map(point => ({ x: point.ranks, y: point[key], text: `${formatCount(point.ranks, "rank")}` }))
    }))
  }) }));
  const tables = curves.map(({ axis, points, left_out: leftOut }) => {
    const [first] = points, isOwn = point => axes.some(({ name, size }) => name === axis && size === point.size);
    const table = makeTable(`Varied: ${describeVaried(axis)}. The efficiency is the speed per rank as a share of that of the first line`,
      [{ title: axis }, ...["Ranks", ...COSTS.map(([title]) => title), "Efficiency"].map(title => ({ title, number: true }))],
      points.map(point => [isOwn(point) ? create("strong", {}, `${point.size} (this plan)`) : `${point.size}`, formatRanks(point.ranks),
        ...COSTS.map(([, key, format]) => format(point[key])),
        `${(100 * first.seconds * first.ranks / (point.seconds * point.ranks)).toPrecision(3)} %`]));
    if (leftOut.length)
      table.append(create("p", {}, "Left out:"), create("ul", {}, ...groupReasons(leftOut).map(({ sizes, reason }) =>
        create("li", {}, `${axis} = ${sizes.join(", ")}: ${reason}`))));
    return table;
  });
  show("scaling", ...charts.flatMap(({ title, chart }) => [create("h3", {}, title), chart.figure]), ...tables);
  charts.forEach(({ chart }) => chart.draw());
}

/** The sizes that were left out: those of equal reasons together, whatever numbers are in them, with the reason of the first. */
function groupReasons(leftOut) {
  return [...groupBy(leftOut, ({ reason }) => reason.replace(/\d+/g, "#")).values()].map(same =>
    ({ sizes: same.map(({ size }) => size), reason: same[0].reason }));
}
