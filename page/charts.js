// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Charts by Chart.js. Each stands beside a table with the same numbers, and each part of a bar has a pattern.

const charts = [];

function getColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A fill that can be told apart without its color: plain, stripes one way, the other way, dots. */
function makeFill(color, pattern) {
  if (pattern === 0)
    return color;
  const tile = create("canvas", { width: 8, height: 8 }), context = tile.getContext("2d");
  context.fillStyle = color;
  context.fillRect(0, 0, 8, 8);
  context.strokeStyle = context.fillStyle = getColor("--page");
  context.lineWidth = 1.5;
  context.beginPath();
  if (pattern === 3) {
    context.arc(4, 4, 1.4, 0, 2 * Math.PI);
    context.fill();
  } else {
    for (const offset of [-8, 0, 8]) {
      context.moveTo(offset, pattern === 1 ? 8 : 0);
      context.lineTo(offset + 8, pattern === 1 ? 0 : 8);
    }
    context.stroke();
  }
  return context.createPattern(tile, "repeat");
}

const COLORS = ["--first", "--second", "--third", "--fourth"];

function applyTheme(chart) {
  chart.data.datasets.forEach((dataset, i) => {
    dataset.backgroundColor = makeFill(getColor(COLORS[i]), i);
    dataset.borderColor = getColor(COLORS[i]);
  });
  const { x, y } = chart.options.scales, text = getColor("--text"), line = getColor("--line");
  for (const scale of [x, y]) {
    scale.ticks.color = text;
    scale.grid.color = line;
    scale.title.color = text;
  }
  chart.options.plugins.legend.labels.color = text;
  chart.update();
}

/** A chart of at most four series. `label` is for screen readers; `tooltip` is the text about a point. */
function makeChart({ label, height, type, data, scales, tooltip, ...options }) {
  const canvas = create("canvas", { role: "img", "aria-label": `${label}. The table below has the numbers.` });
  const box = create("div", { class: "chart", style: `height: ${height}px` }, canvas);
  const draw = () => {
    const chart = new Chart(canvas, {
      type, data,
      options: {
        ...options, animation: false, maintainAspectRatio: false, scales,
        plugins: { legend: { display: data.datasets.length > 1, labels: {} }, tooltip: { callbacks: { label: tooltip } } }
      }
    });
    applyTheme(chart);
    charts.push(chart);
    return chart;
  };
  return { figure: create("figure", {}, box), draw };
}

/** The axis of the numbers, and the axis of the names. */
function makeScales(format, axis, stacked) {
  return {
    x: { stacked, grid: {}, ticks: { callback: value => format(value) }, title: { display: true, text: axis } },
    y: { stacked, grid: { display: false }, ticks: { autoSkip: false }, title: { display: false } }
  };
}

/** Stacked bars, one for each label. `series`: {label, values}. */
function makeBars({ label, labels, series, format, axis }) {
  return makeChart({
    label, height: 90 + 30 * labels.length, type: "bar", indexAxis: "y",
    data: { labels, datasets: series.map(({ label, values }) => ({ label, data: values, borderWidth: 1, maxBarThickness: 22 })) },
    scales: makeScales(format, axis, true), tooltip: item => `${item.dataset.label}: ${format(item.raw)}`
  });
}

/** Bars from one number to another, several for each label. `series`: {label, bars: {label, range, text?}}. */
function makeRanges({ label, labels, series, format, axis }) {
  return makeChart({
    label, height: 90 + 30 * labels.length, type: "bar", indexAxis: "y", grouped: false,
    data: { labels, datasets: series.map(({ label, bars }) =>
      ({ label, data: bars.map(bar => ({ x: bar.range, y: bar.label, text: bar.text })), borderWidth: 0, maxBarThickness: 22 })) },
    scales: makeScales(format, axis, false),
    tooltip: ({ dataset, raw }) => `${dataset.label}${raw.text ? `, ${raw.text}` : ""}: ${format(raw.x[1] - raw.x[0])} from ${format(raw.x[0])}`
  });
}

/** Lines over numbers, which are whole ones on a linear axis. `series`: {label, points: {x, y, text?}, isStepped?, isScattered?}, where y is null in a
 * gap, and isScattered stands for points without a line; the formats are those of x and y. `ticksX`: where the ticks of x are, if not at round numbers. */
function makeLines({ label, series, formatX, formatY, axisX, axisY, ticksX, type = "linear", beginAtZero = type === "linear", height = 260 }) {
  const isLabeled = value => type === "linear" || /^[125](\.0+)?e/.test(value.toExponential(3));
  const makeScale = (format, text, ticks = {}) => ({ type, grid: {}, ticks: { callback: value => isLabeled(value) ? format(value) : "", ...ticks }, title: { display: true, text } });
  return makeChart({
    label, height, type: "line", interaction: { mode: "nearest", axis: "x", intersect: false },
    data: { datasets: series.map(({ label, points, isStepped, isScattered = false }, i) => ({ label, data: points, stepped: isStepped ? "after" : false, borderWidth: 2,
      showLine: !isScattered, borderDash: [[], [6, 3], [2, 2], [8, 3, 2, 3]][i], pointRadius: isScattered ? 5 : points.length > 60 ? 0 : 3 })) },
    scales: { x: ticksX ? { ...makeScale(formatX, axisX, { callback: formatX }), afterBuildTicks: scale => { scale.ticks = ticksX.map(value => ({ value })); } }
      : makeScale(formatX, axisX, { precision: 0 }), y: { ...makeScale(formatY, axisY), beginAtZero } },
    tooltip: ({ dataset, raw }) => `${dataset.label}: ${formatY(raw.y)}${raw.text ? `, ${raw.text}` : ""}`
  });
}

function showWithChart(section, title, chart, ...content) {
  show(section, create("h3", {}, title), chart.figure, ...content);
  return chart.draw(); // it needs its size
}

function showWithBars(section, title, bars, ...tables) {
  showWithChart(section, title, makeBars(bars), ...tables);
}

window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(applyTheme));
window.addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach(details => { details.open = true; });
  document.documentElement.dataset.theme = "light";
  charts.forEach(applyTheme);
});
window.addEventListener("afterprint", () => {
  delete document.documentElement.dataset.theme;
  charts.forEach(applyTheme);
});
