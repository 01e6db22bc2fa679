// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which modules are predicted to be limited by the memory, and which by the arithmetic of the device: a roofline
// (Williams, Waterman, Patterson: Roofline, CACM 2009).

const MAX_ROOFS = 3;

/** The rates that contractions of the program's parameters may reach: {dtype, flops}, the highest first, no two equal. */
function findRoofs() {
  const { flops } = prediction.machine.device;
  const dtypes = [...new Set(report.parameters.map(({ dtype }) => dtype))].filter(dtype => flops[dtype]);
  return [...groupBy(dtypes, dtype => flops[dtype])].map(([rate, equal]) => ({ dtype: equal.join(", "), flops: rate }))
    .sort((a, b) => b.flops - a.flops).slice(0, MAX_ROOFS);
}

/** The modules with contractions, equal layers as one: {name, intensity (FLOP per byte), rate (FLOP per second), seconds, bytes}. */
function findRooflinePoints(program) {
  const modules = program.modules.filter(module => module.flops > 0 && module.bytes_touched > 0 && module.compute_seconds > 0);
  return [...groupBy(modules, module => getPattern(module.fqn)).values()].map(items => {
    const [flops, bytes, seconds] = ["flops", "bytes_touched", "compute_seconds"].map(key => sum(items, item => item[key]));
    return { name: describeModules(items.map(item => item.fqn)), intensity: flops / bytes, rate: flops / seconds, seconds, bytes };
  }).sort((a, b) => b.seconds - a.seconds);
}

function showRoofline(program, ofRanks) {
  const roofs = findRoofs(), points = findRooflinePoints(program);
  if (!roofs.length || !points.length)
    return;
  const { memory_bandwidth: bandwidth } = prediction.machine.device;
  const formatRate = rate => `${formatFlops(rate)}/s`, formatIntensity = value => Number(value.toPrecision(3)).toLocaleString("en");
  const intensities = [...points.map(({ intensity }) => intensity), ...roofs.map(({ flops }) => flops / bandwidth)];
  const first = Math.min(...intensities) / 2, last = Math.max(...intensities) * 2;
  const getRoof = (flops, intensity) => Math.min(flops, bandwidth * intensity);
  const table = makeTable(`Modules with contractions${ofRanks}. The roof is what ${prediction.machine.name} allows at ${formatRate(roofs[0].flops)} and ${
    formatBytes(bandwidth)}/s; the rest is the fixed time of ops, elementwise work, and other ranks on the device`, [{ title: "Module", wide: true },
    ...["Compute time", "FLOP per byte", "FLOP/s", "Of the roof", "Of the bandwidth"].map(title => ({ title, number: true }))],
    points.map(({ name, intensity, rate, seconds, bytes }) => [create("span", { class: "fqn" }, name), formatSeconds(seconds), formatIntensity(intensity),
      formatRate(rate), ...[rate / getRoof(roofs[0].flops, intensity), bytes / seconds / bandwidth].map(share => `${(100 * share).toFixed(1)} %`)]));
  showWithChart("time", `Roofline${ofRanks}`, makeLines({
    label: "FLOP per second of the modules by FLOP per byte, below what the device allows", type: "logarithmic", height: 320,
    formatX: formatIntensity, formatY: formatRate, axisX: "FLOP per byte of memory", axisY: "FLOP per second",
    series: [{ label: "module", isScattered: true, points: points.map(({ name, intensity, rate }) => ({ x: intensity, y: rate, text: name })) },
      ...roofs.map(({ dtype, flops }) => ({ label: `roof of ${dtype}`, points: [first, flops / bandwidth, last].map(x => ({ x, y: getRoof(flops, x) })) }))]
  }), table);
}
