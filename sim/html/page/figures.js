"use strict";
// Memory over time, and kernels under the roofline. Uses element(), bytesText() and the like of report.js.

const MARKS = ["copies to the host", "copies back", "computes again"];
const MARK_COLOURS = ["#882255", "#117733", "#ee8866"];

/** Draws `lists[k][i]` from `times[i]` to the next time, one list on top of the other. */
function drawStack(context, x, y, times, end, lists, colours) {
  const below = new Array(times.length).fill(0);
  lists.forEach((list, k) => {
    context.fillStyle = colours[k % colours.length];
    list.forEach((bytes, i) => {
      const from = x(times[i]);
      const until = x(i + 1 < times.length ? times[i + 1] : end);
      context.fillRect(from, y(below[i] + bytes), Math.max(until - from, 0.7), y(below[i]) - y(below[i] + bytes));
      below[i] += bytes;
    });
  });
}

function drawMemory(context, width, height, rank, memory) {
  const strip = 18;  // for marks, below the curve
  const floor = height - strip;
  context.clearRect(0, 0, width, height);
  const highest = Math.max(memory.capacity_bytes, ...rank.bytes) * 1.05;
  const x = (time) => time / memory.step_time_s * width;
  const y = (bytes) => floor - bytes / highest * floor;
  const parts = rank.categories;
  if (parts) drawStack(context, x, y, parts.times_s, memory.step_time_s, parts.bytes, COLOURS);
  else drawStack(context, x, y, rank.times_s, memory.step_time_s, [rank.bytes], COLOURS);
  context.fillStyle = "#cc3311";
  context.fillRect(0, y(memory.capacity_bytes), width, 1.5);
  context.font = "11px system-ui, sans-serif";
  context.fillText("capacity " + bytesText(memory.capacity_bytes), 6, y(memory.capacity_bytes) + 13);
  const peak = rank.bytes.indexOf(Math.max(...rank.bytes));
  if (peak >= 0) context.fillRect(x(rank.times_s[peak]) - 1, y(rank.bytes[peak]), 2, floor);
  rank.marks.kind.forEach((kind, i) => {
    context.fillStyle = MARK_COLOURS[kind];
    const from = x(rank.marks.begin_s[i]);
    context.fillRect(from, floor + 2 + 5 * kind, Math.max(x(rank.marks.end_s[i]) - from, 1), 4);
  });
}

function memoryNode(memory) {
  const canvas = element("canvas", {role: "img", "aria-label": "memory over time"});
  canvas.width = 1350;
  canvas.height = 220;
  const words = element("span");
  const legend = element("div");
  const select = element("select", {"aria-label": "rank", onchange: () => show()}, ...memory.ranks.map((rank, i) =>
    element("option", {value: i}, "rank " + rank.rank + ", stage " + rank.stage)));
  const show = () => {
    const rank = memory.ranks[Number(select.value || 0)];
    if (!rank) return;
    drawMemory(canvas.getContext("2d"), canvas.width, canvas.height, rank, memory);
    words.textContent = "peak (red) " + bytesText(rank.peak_bytes) + ", parameters, gradients and optimizer states " +
      bytesText(rank.static_bytes);
    const used = new Set(rank.marks.kind);
    const names = rank.categories ? rank.categories.names : ["in use"];
    legend.replaceChildren(legendNode(names, COLOURS), legendNode(MARKS.filter((_, kind) => used.has(kind)),
      MARK_COLOURS.filter((_, kind) => used.has(kind))));
  };
  show();
  return element("div", {}, element("div", {class: "tools"}, select, words), legend, canvas);
}

/** Logarithmic: right FLOP per byte, up FLOP/s. */
function rooflineNode(roofline) {
  const canvas = element("canvas", {role: "img", "aria-label": "kernels under the roofline"});
  canvas.width = 1350;
  canvas.height = 380;
  const words = element("span", {}, "a click names the kernel");
  const [left, floor] = [70, canvas.height - 30];
  const intensities = roofline.points.map((point) => point.intensity);
  const rates = roofline.points.map((point) => point.rate);
  const range = (values) => [Math.log(Math.min(...values) / 2), Math.log(Math.max(...values) * 2)];
  const [low, high] = range(intensities);
  const [slow, fast] = range([...rates, roofline.peak || Math.max(...rates)]);
  const x = (intensity) => left + (Math.log(intensity) - low) / (high - low) * (canvas.width - left - 10);
  const y = (rate) => floor - (Math.log(rate) - slow) / (fast - slow) * (floor - 10);
  const kinds = [...new Set(roofline.points.map((point) => point.kind))];
  const context = canvas.getContext("2d");
  context.font = "11px system-ui, sans-serif";
  context.strokeStyle = "#999999";
  context.beginPath();
  for (let step = 0; step <= 200; ++step) {
    const intensity = Math.exp(low + (high - low) * step / 200);
    const roof = Math.min(roofline.peak || Infinity, intensity * roofline.bandwidth);
    if (roof >= Math.exp(slow)) context.lineTo(x(intensity), y(roof));
  }
  context.stroke();
  for (const point of roofline.points) {
    context.fillStyle = COLOURS[kinds.indexOf(point.kind) % COLOURS.length];
    context.fillRect(x(point.intensity) - 3, y(point.rate) - 3, 6, 6);
  }
  context.fillStyle = "#777777";
  for (const share of [0, 0.5, 0.9]) {
    context.fillText(significant(Math.exp(low + share * (high - low)), 2) + " FLOP/B", left + share * (canvas.width - left), floor + 18);
    context.fillText(significant(Math.exp(slow + share * (fast - slow)) / 1e12, 2) + " TFLOP/s", 2, floor - share * (floor - 10));
  }
  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect();
    const at = [(event.clientX - box.left) * canvas.width / box.width, (event.clientY - box.top) * canvas.height / box.height];
    const far = (point) => Math.hypot(x(point.intensity) - at[0], y(point.rate) - at[1]);
    const nearest = roofline.points.reduce((best, point) => (far(point) < far(best) ? point : best));
    words.textContent = nearest.kind + " " + nearest.shape + ": " + significant(nearest.rate / 1e12, 3) + " TFLOP/s, " +
      significant(nearest.intensity, 3) + " FLOP per byte";
  });
  return element("div", {}, legendNode(kinds, COLOURS), element("div", {class: "tools"}, words), canvas,
    element("p", {class: "note"}, "line: peak and memory bandwidth of the GPU; other arithmetic than matrix products has a lower peak"));
}
