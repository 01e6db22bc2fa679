// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each class of ranks does over time: as predicted, and, beside it, as its first rank did in a run.

const SEGMENT_KINDS = ["compute", "collectives", "waiting", "bubbles"];

function getWaitingKind(id) {
  return report.collectives[id].kind === "transfer" ? "bubbles" : "waiting";
}

function isLong({ begin, end }) {
  return end > begin;
}

function getCollectiveSegments({ id, arrival, start, end }) {
  return [{ kind: getWaitingKind(id), begin: arrival, end: start, id }, { kind: "collectives", begin: start, end, id }].filter(isLong);
}

/** What the ranks of a class do, one after the other: {kind, begin, end, id?}, where `id` is that of the collective. */
function getPredictedSegments({ timeline, seconds }) {
  const segments = [];
  let now = 0;
  for (const times of timeline) {
    segments.push({ kind: "compute", begin: now, end: times.arrival }, ...getCollectiveSegments(times));
    now = times.end;
  }
  segments.push({ kind: "compute", begin: now, end: seconds });
  return segments.filter(isLong);
}

function getMeasuredSegments({ compute, collectives }) {
  return [...compute.map(([begin, end]) => ({ kind: "compute", begin, end })).filter(isLong), ...collectives.flatMap(getCollectiveSegments)];
}

/** The segments of collectives that overlap with computation, in as many lists as go on at the same time. */
function getOverlappedSegments({ overlapped }) {
  const lanes = [];
  for (const times of [...overlapped].sort((a, b) => a.arrival - b.arrival)) {
    const free = lanes.find(lane => lane.end <= times.arrival);
    const lane = free ?? { segments: [] };
    if (!free)
      lanes.push(lane);
    lane.segments.push(...getCollectiveSegments(times));
    lane.end = times.end;
  }
  return lanes.map(({ segments }) => segments);
}

const MAX_TIMELINE_ROWS = 16;

/** The lines of the timeline: {label, segments, seconds}. */
function findTimelines() {
  const rows = [];
  const addRows = (label, item, segments) => {
    rows.push({ label, segments, seconds: item.seconds });
    for (const [i, lane] of getOverlappedSegments(item).entries())
      rows.push({ label: `${label}, overlapped${i ? ` ${i + 1}` : ""}`, segments: lane, seconds: sum(lane, ({ begin, end }) => end - begin) });
  };
  const ofRank = new Map((measured?.ranks ?? []).map(item => [item.rank, item]));
  const classes = prediction ? joinClasses(prediction.by_class, item => item)
    : report.rank_classes.map((_, index) => ({ ranks: ranksOfClass[index] }));
  for (const { ranks, label, item } of classes) {
    if (item)
      addRows(ofRank.size ? `${label}, predicted` : label, item, getPredictedSegments(item));
    const run = ofRank.get(ranks[0]);
    if (run)
      addRows(`rank ${run.rank}, measured`, run, getMeasuredSegments(run));
  }
  return rows;
}

function describeCollective(id) {
  const { kind, fqn } = report.collectives[id];
  return fqn ? `${kind} of ${fqn}` : kind;
}

const MAX_TIMELINE_COLLECTIVES = 40;

/** The collectives between two times, in order. */
function makeSegmentTable(rows, begin, end) {
  const parts = rows.flatMap(row => row.segments.filter(segment => segment.id !== undefined && segment.end > begin && segment.begin < end)
    .map(segment => ({ row, ...segment }))).sort((a, b) => a.begin - b.begin);
  const table = makeTable("Collectives and waiting in this part of the run",
    [{ title: "Ranks" }, { title: "What" }, { title: "Collective", wide: true }, { title: "Begins", number: true }, { title: "Takes", number: true }],
    parts.slice(0, MAX_TIMELINE_COLLECTIVES).map(part => [part.row.label, part.kind, create("span", { class: "fqn" }, describeCollective(part.id)),
      formatSeconds(part.begin), formatSeconds(part.end - part.begin)]));
  if (parts.length > MAX_TIMELINE_COLLECTIVES)
    table.append(create("p", {}, `${(parts.length - MAX_TIMELINE_COLLECTIVES).toLocaleString("en")} further parts aren't listed; choose a shorter time.`));
  return table;
}

function showTimeline() {
  const all = findTimelines(), rows = all.slice(0, MAX_TIMELINE_ROWS);
  if (!rows.some(row => row.segments.length))
    return;
  const seconds = Math.max(...rows.map(row => row.seconds));
  const kinds = SEGMENT_KINDS.filter(kind => kind !== "bubbles" || rows.some(row => row.segments.some(segment => segment.kind === kind)));
  const getTotal = (row, kind) => sum(row.segments.filter(segment => segment.kind === kind), ({ begin, end }) => end - begin);
  const totals = makeTable(`Sums${measured ? `; measured in run ${measured.run} of ${formatCount(measured.runs, "run")}, the one of median length` : ""}`,
    [{ title: "Ranks" }, ...["total", ...kinds].map(title => ({ title, number: true }))],
    rows.map(row => [row.label, formatSeconds(row.seconds), ...kinds.map(kind => formatSeconds(getTotal(row, kind)))]));
  const parts = create("div");
  const chart = showWithChart("timeline", measured ? "Predicted and measured" : "Predicted", makeRanges({
    label: `What ranks do over time: ${kinds.join(", ")}`, labels: rows.map(row => row.label), format: formatSeconds, axis: "time since the start",
    series: kinds.map(kind => ({ label: kind, bars: rows.flatMap(row => row.segments.filter(segment => segment.kind === kind)
      .map(({ begin, end, id }) => ({ label: row.label, range: [begin, end], text: id === undefined ? "" : describeCollective(id) }))) }))
  }), totals, parts, ...all.length > rows.length ? [create("p", { class: "hint" }, `${all.length - rows.length} further lines aren't shown.`)] : []);
  const begin = document.getElementById("timeline-begin"), end = document.getElementById("timeline-end");
  const update = () => {
    const range = [Number(begin.value), Number(end.value)].sort((a, b) => a - b).map(value => seconds * value / 1000);
    document.getElementById("timeline-part").textContent = `${formatSeconds(range[0])} to ${formatSeconds(range[1])}`;
    [chart.options.scales.x.min, chart.options.scales.x.max] = range[0] < range[1] ? range : [0, seconds];
    chart.update();
    parts.replaceChildren(makeSegmentTable(rows, ...range));
  };
  begin.addEventListener("input", update);
  end.addEventListener("input", update);
  update();
}
