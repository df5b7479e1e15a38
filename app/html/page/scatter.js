"use strict";
// Kernels under the roofline, and measured against simulated times. Uses addChart() and the like of charts.js.

/** One series of points per group, so that the legend can hide it. */
function groupedSeries(points, groupOf, valueOf) {
  const groups = [...new Set(points.map(groupOf))];
  return groups.map((group, i) => ({name: group, type: "scatter", symbol: "rect", symbolSize: 6, color: COLOURS[i % COLOURS.length],
    data: points.filter((point) => groupOf(point) === group).map(valueOf)}));
}

/** From a power of ten below all values to one above. */
function decades(values) {
  return {min: 10 ** Math.floor(Math.log10(Math.min(...values))), max: 10 ** Math.ceil(Math.log10(Math.max(...values) * 1.001))};
}

const LOGARITHMIC = {type: "log", scale: false};
const TERA = 1e12;

/** Right FLOP per byte, up FLOP/s; the roof is bandwidth, then peak. */
function rooflineNode(roofline) {
  const points = roofline.points;
  const wide = decades(points.map((point) => point.intensity));
  const high = decades([...points.map((point) => point.rate / TERA), (roofline.peak || points[0].rate) / TERA]);
  const roof = (intensity) => [intensity, Math.min(roofline.peak || Infinity, intensity * roofline.bandwidth) / TERA];
  const corner = roofline.peak ? Math.min(Math.max(roofline.peak / roofline.bandwidth, wide.min), wide.max) : wide.max;
  const series = groupedSeries(points, (point) => point.kind.replaceAll("_", " "), (point) => ({name: point.shape, value: [point.intensity, point.rate / TERA]}));
  series.push({name: "roof", type: "line", symbol: "none", silent: true, clip: true, color: COLOURS[12],
               data: [wide.min, corner, wide.max].map(roof)});
  const tip = ({seriesName, name, value}) => seriesName + " " + name + "\n" + significant(value[1], 3) + " TFLOP/s, " +
    significant(value[0], 3) + " FLOP per byte";
  const short = (value) => significant(value, 2);
  const {box} = addChart("kernels under the roofline", 420, {
    tooltip: {...TOOLTIP, formatter: tip}, legend: LEGEND, grid: {left: 80, right: 20, top: 34, bottom: 74},
    xAxis: numberAxis("FLOP per byte", short, {...LOGARITHMIC, ...wide}),
    yAxis: numberAxis("TFLOP/s", short, {...LOGARITHMIC, ...high, nameGap: 50}), dataZoom: zoomOf({xAxisIndex: [0]}), series,
  });
  return element("div", {}, box,
    element("p", {class: "note"}, "line: peak and memory bandwidth of the GPU; other arithmetic than matrix products has a lower peak"));
}

function scatterNode(scatter) {
  const range = decades(scatter.points.flatMap((point) => [point.x, point.y]));
  const series = groupedSeries(scatter.points, (point) => point.group, (point) => ({name: point.name, value: [point.x, point.y]}));
  series.push({name: "equal", type: "line", symbol: "none", silent: true, color: COLOURS[12],
               data: [[range.min, range.min], [range.max, range.max]]});
  const tip = ({seriesName, name, value}) => name + " (" + seriesName + ")\nmeasured " + timeText(value[0]) + ", simulated " +
    timeText(value[1]) + ", " + significant(100 * (value[1] / value[0] - 1), 3) + " %";
  const {box} = addChart(scatter.title, 620, {
    tooltip: {...TOOLTIP, formatter: tip}, legend: LEGEND, grid: {left: 80, right: 20, top: 34, bottom: 74},
    xAxis: numberAxis("measured", timeText, {...LOGARITHMIC, ...range}),
    yAxis: numberAxis("simulated", timeText, {...LOGARITHMIC, ...range, nameGap: 56}), dataZoom: zoomOf({xAxisIndex: [0]}), series,
  });
  return element("div", {}, box, element("p", {class: "note"}, scatter.note));
}
