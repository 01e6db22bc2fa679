// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a training stands, its curves, and their values. TrainingPage.cpp describes the data.

const training = JSON.parse(document.getElementById("training").textContent);
const { points, unit } = training;
const RELOAD_SECONDS = 5;

/** The curves that the training has: {key, title, beginAtZero}. */
const curves = [
  { key: "loss", title: "Loss", beginAtZero: false },
  { key: "lr", title: "Learning rate", beginAtZero: true },
  { key: "grad_norm", title: "Gradient norm", beginAtZero: true },
  { key: "rate", title: unit === "tokens" ? "Tokens per second" : "Examples per second", beginAtZero: true }
].filter(({ key }) => points[key]);

function formatNumber(value) {
  if (value === null)
    return "no finite number";
  const short = Number(value.toPrecision(4));
  return Math.abs(short) >= 1e-4 && Math.abs(short) < 1e9 || short === 0 ? short.toLocaleString("en", { maximumSignificantDigits: 4 }) : short.toExponential();
}

function getLast(key) {
  return points[key][points[key].length - 1];
}

function showState() {
  const facts = [["State", training.state], ["Steps", `${training.step.toLocaleString("en")} of ${training.steps.toLocaleString("en")}`]];
  if (points.step.length) {
    const finite = points.loss.filter(value => value !== null);
    facts.push(...curves.map(({ key, title }) => [`Last ${title.toLowerCase()}`, formatNumber(getLast(key))]));
    if (finite.length)
      facts.push(["Lowest loss", formatNumber(Math.min(...finite))]);
  }
  facts.push(["Page written", `${new Date(1000 * training.written).toISOString().slice(0, 19).replace("T", " ")} UTC`]);
  show("state", create("dl", {}, ...facts.flatMap(([name, value]) => [create("dt", {}, name), create("dd", {}, value)])));
  if (training.problem)
    show("state", create("p", { class: "problem", role: "alert" }, training.problem));
}

/** The choice is kept in the address, so that it outlives the page. */
function offerReloading() {
  if (training.state !== "running")
    return;
  document.getElementById("reloading").hidden = false;
  const box = document.getElementById("reload");
  box.checked = location.hash === "#reload";
  let timer;
  const update = () => {
    clearTimeout(timer);
    if (box.checked)
      timer = setTimeout(() => location.reload(), 1000 * RELOAD_SECONDS);
  };
  box.addEventListener("change", () => {
    history.replaceState(null, "", box.checked ? "#reload" : "#");
    update();
  });
  update();
}

function describePoints() {
  const { steps_per_point: count } = training;
  return count === 1 ? "one line for each step" : `each line has the means of ${count.toLocaleString("en")} steps, of which it names the last`;
}

function showCurves() {
  if (!points.step.length)
    return;
  for (const { key, title, beginAtZero } of curves) {
    const chart = makeLines({
      label: `${title} by step`, formatX: value => value.toLocaleString("en"), formatY: formatNumber, axisX: "step", axisY: title.toLowerCase(),
      beginAtZero, series: [{ label: title, points: points.step.map((step, i) => ({ x: step, y: points[key][i], text: `step ${step.toLocaleString("en")}` })) }]
    });
    show("curves", create("div", {}, create("h3", {}, title), chart.figure));
    chart.draw();
  }
  const table = makeTable(`By step; ${describePoints()}`, ["Step", ...curves.map(({ title }) => title)].map(title => ({ title, number: true })),
    points.step.map((step, i) => [step.toLocaleString("en"), ...curves.map(({ key }) => formatNumber(points[key][i]))]));
  for (const [name, value] of Object.entries({ id: "rows", tabindex: 0, role: "region", "aria-labelledby": "values-title" }))
    table.setAttribute(name, value);
  show("values", table);
}

document.title = `${training.name}: training, ${training.state}`;
document.querySelector("h1").textContent = `Training of ${training.name}`;
showState();
offerReloading();
showCurves();
