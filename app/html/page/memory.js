"use strict";
// Memory over time. Uses addChart() and the like of charts.js, element() of elements.js.

const MARKS = ["copies to the host", "copies back", "computes again"];
const MARK_COLOURS = ["#8a3f01", "#0f6455", "#f59910"];
const MARK_ROW = 16;  // pixels


/** What the line over the stack is: the same without a plan, or the other side of a comparison. */
function beforeName(memory) {
  return memory.before || "without the plan";
}

/** The largest unit below which `bytes` is not: {name, size}. */
function unitOf(bytes) {
  const [name, size] = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]].find(([, at]) => bytes >= at) || ["B", 1];
  return {name, size};
}

/** `bytes[i]` holds from `times[i]` until the next time. */
function stackSeries(name, times, end, bytes, colour, unit) {
  const data = times.map((time, i) => [time, bytes[i] / unit]);
  data.push([end, bytes[bytes.length - 1] / unit]);
  return {name, type: "line", stack: "memory", step: "end", symbol: "none", data, color: colour, lineStyle: {width: 0}, areaStyle: {opacity: 1}};
}

function memorySeries(rank, memory, unit) {
  const parts = rank.categories;
  if (!parts || parts.bytes.every((row) => row.every((bytes) => bytes === 0))) return [stackSeries("in use", rank.times_s, memory.step_time_s, rank.bytes, COLOURS[0], unit)];
  return parts.names.map((name, k) => stackSeries(name, parts.times_s, memory.step_time_s, parts.bytes[k], COLOURS[k % COLOURS.length], unit))
    .filter((_, k) => parts.bytes[k].some((bytes) => bytes > 0));
}

/** The same memory without a plan, as a line over the stack. */
function beforeSeries(rank, memory, unit) {
  const {times_s: times, bytes} = rank.before;
  return {...stackSeries(beforeName(memory), times, memory.step_time_s, bytes, styleColour("faint"), unit), stack: null, areaStyle: null, lineStyle: {width: 1.5}};
}

/** Lines of the capacity, of the budget of a plan where there is one, and of the peak; those above `highest` are left out. */
function memoryLines(rank, memory, unit, highest) {
  const line = (at, text, color, position) => ({...at, lineStyle: {color, type: "solid"}, label: {formatter: text, position, rotate: 0, color}});
  const limit = (name, bytes, color, position) => bytes <= highest ? [line({yAxis: bytes / unit}, name + " " + bytesText(bytes), color, position)] : [];
  const lines = [...limit("capacity", memory.capacity_bytes, styleColour("bad"), "insideStartBottom"),
    ...limit("budget", memory.budget_bytes, styleColour("warn"), "insideStartTop")];
  const peak = rank.bytes.indexOf(Math.max(...rank.bytes));
  if (peak >= 0) lines.push(line({xAxis: rank.times_s[peak]}, "peak", styleColour("bad"), "end"));
  return {silent: true, symbol: "none", precision: -1, data: lines};  // as it is: seconds are rounded to hundredths otherwise
}

/** When the rank copies and computes again, a row for each of `kinds`; no shorter than a pixel of the whole step. */
function markSeries(rank, memory, kinds) {
  return kinds.map((kind, row) => {
    const data = [];
    rank.marks.kind.forEach((found, i) => {
      if (found !== kind) return;
      const [begin, end] = [rank.marks.begin_s[i], rank.marks.end_s[i]];
      data.push([begin, row], [Math.max(end, begin + memory.step_time_s / 1350), row], ["-", "-"]);
    });
    return {name: MARKS[kind], type: "line", xAxisIndex: 1, yAxisIndex: 1, symbol: "none", silent: true, data, color: MARK_COLOURS[kind],
            lineStyle: {width: 8, cap: "butt"}, tooltip: {show: false}};
  });
}

function memoryTip(points, memory, unit) {
  const before = beforeName(memory);
  const text = ({seriesName, value}) => seriesName + " " + bytesText(value[1] * unit);
  const found = points.filter((point) => !MARKS.includes(point.seriesName));
  const stacked = found.filter((point) => point.seriesName !== before);
  if (stacked.length === 0) return "";
  const total = stacked.reduce((sum, point) => sum + point.value[1], 0);
  return [timeText(stacked[0].value[0]) + ": " + bytesText(total * unit), ...stacked.filter((point) => point.value[1] > 0).map(text).reverse(),
    ...found.filter((point) => point.seriesName === before).map(text)].join("\n");
}

/** What the picture has to reach: a capacity far above everything else would flatten it. */
function highestOf(rank, memory) {
  const used = Math.max(memory.budget_bytes || 0, ...rank.bytes, ...(rank.before ? rank.before.bytes : []));
  const capacity = memory.capacity_bytes || 0;
  return (capacity <= 4 * used ? Math.max(used, capacity) : used) * 1.05;
}

function memoryOption(rank, memory, height) {
  const kinds = [0, 1, 2].filter((kind) => rank.marks.kind.includes(kind));
  const bottom = 50 + (kinds.length > 0 ? kinds.length * MARK_ROW + 8 : 0);
  const top = 44;
  const left = kinds.length > 0 ? 110 : 64;
  const highest = highestOf(rank, memory);
  const unit = unitOf(highest);
  const stack = memorySeries(rank, memory, unit.size);
  stack[stack.length - 1].markLine = memoryLines(rank, memory, unit.size, highest);
  if (rank.before) stack.push(beforeSeries(rank, memory, unit.size));
  const time = {min: 0, max: memory.step_time_s};
  const label = {formatter: (value) => significant(value, 3), showMaxLabel: false};
  return {
    tooltip: {...TOOLTIP, trigger: "axis", formatter: (points) => memoryTip(points, memory, unit.size)},
    legend: {...LEGEND, data: stack.map((series) => series.name)},
    grid: [{left, right: 20, top, height: height - top - bottom}, {left, right: 20, height: kinds.length * MARK_ROW, bottom: 30}],
    xAxis: [numberAxis("", timeText, time), {type: "value", gridIndex: 1, show: false, ...time}],
    yAxis: [numberAxis(unit.name, null, {min: 0, max: highest / unit.size, nameGap: 40, axisLabel: label}),
      {type: "category", gridIndex: 1, data: kinds.map((kind) => MARKS[kind]), inverse: true, axisLine: {show: false}, axisTick: {show: false},
       axisLabel: {fontSize: 10}}],
    dataZoom: zoomOf({xAxisIndex: [0, 1]}), series: [...stack, ...markSeries(rank, memory, kinds)],
  };
}

/** Memory at up to 200 times of a rank, in MiB. */
function memoryTable(rank) {
  const parts = rank.categories || {names: ["in use"], times_s: rank.times_s, bytes: [rank.bytes]};
  const every = Math.max(1, Math.ceil(parts.times_s.length / 200));
  const rows = parts.times_s.map((time, i) => [time * 1e3, ...parts.bytes.map((bytes) => bytes[i] / 2 ** 20)]).filter((_, i) => i % every === 0);
  return {columns: ["ms", ...parts.names.map((name) => name + " [MiB]")], rows};
}

function memoryNode(memory) {
  const height = 330;
  const ranks = memory.ranks;
  const {box, chart} = addChart("memory over time", height);
  const words = element("span");
  const select = element("select", {"aria-label": "rank", onchange: () => show()}, ...ranks.map((rank, i) =>
    element("option", {value: i}, rank.name || "rank " + rank.rank + ", stage " + rank.stage)));
  const show = () => {
    const rank = ranks[Number(select.value || 0)];
    if (!rank) return;
    chart.setOption({...CHART_BASE, ...memoryOption(rank, memory, height)}, {notMerge: true});
    words.textContent = (memory.shown ? memory.shown + ": " : "") + "peak " + bytesText(rank.peak_bytes) + ", held all the time " + bytesText(rank.static_bytes) +
      (memory.capacity_bytes ? ", capacity " + bytesText(memory.capacity_bytes) : "");
  };
  show();
  repaints.push(show);
  return element("div", {}, element("div", {class: "words"}, select, words), box, asTable(() => memoryTable(ranks[Number(select.value || 0)])));
}
