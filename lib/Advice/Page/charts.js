// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bar charts by Chart.js. Each stands beside a table with the same numbers, and each part of a bar has a pattern.

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

/** Stacked bars, one for each label. `series`: {label, values}, at most four. `label` is for screen readers. */
function makeBars({ label, labels, series, format, axis }) {
  const canvas = create("canvas", { role: "img", "aria-label": `${label}. The table below has the numbers.` });
  const box = create("div", { class: "chart", style: `height: ${90 + 30 * labels.length}px` }, canvas);
  const draw = () => {
    const chart = new Chart(canvas, {
      type: "bar",
      data: { labels, datasets: series.map(({ label, values }) => ({ label, data: values, borderWidth: 1, maxBarThickness: 22 })) },
      options: {
        indexAxis: "y", animation: false, maintainAspectRatio: false,
        scales: {
          x: { stacked: true, grid: {}, ticks: { callback: value => format(value) }, title: { display: true, text: axis } },
          y: { stacked: true, grid: { display: false }, ticks: { autoSkip: false }, title: { display: false } }
        },
        plugins: {
          legend: { display: series.length > 1, labels: {} },
          tooltip: { callbacks: { label: item => `${item.dataset.label}: ${format(item.raw)}` } }
        }
      }
    });
    applyTheme(chart);
    charts.push(chart);
  };
  return { figure: create("figure", {}, box), draw };
}

function showWithBars(section, title, bars, ...tables) {
  const chart = makeBars(bars);
  show(section, create("h3", {}, title), chart.figure, ...tables);
  chart.draw(); // it needs its size
}

window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(applyTheme));
window.addEventListener("beforeprint", () => {
  document.documentElement.dataset.theme = "light";
  charts.forEach(applyTheme);
});
window.addEventListener("afterprint", () => {
  delete document.documentElement.dataset.theme;
  charts.forEach(applyTheme);
});
