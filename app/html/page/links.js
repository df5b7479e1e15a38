"use strict";
// How busy the links were: a heat map over time, and the topology coloured by it. Uses addChart() of charts.js, element() and the like of elements.js.

const HEAT = [[255, 250, 205], [254, 178, 76], [240, 59, 32], [120, 0, 38], [30, 0, 10]];
const rgb = (colour) => "rgb(" + colour.join(",") + ")";

/** From light grey over yellow and red to black; `use` is a share of a link's rate. */
function heatColour(use) {
  if (use <= 0) return styleColour("idle");
  const at = Math.min(use, 1) * (HEAT.length - 1);
  const low = Math.min(Math.floor(at), HEAT.length - 2);
  return rgb(HEAT[low].map((value, i) => Math.round(value + (HEAT[low + 1][i] - value) * (at - low))));
}

/** Colours of technologies, where a drawing says how places are joined and not how busy that is. */
const CABLES = {"NVLink": COLOURS[2], "PCIe": COLOURS[1], "C2C": COLOURS[3], "NIC": COLOURS[0], "fabric": COLOURS[5],
                "NVMe": COLOURS[10], "host memory": COLOURS[6]};

function cableColour(technology) {
  return CABLES[technology] || COLOURS[12];
}

/** "371 of 450 GB/s promised": what is usable, and the line rate where that is more. */
function rateText(row) {
  const promised = row.promised > row.rate * 1.0005 ? " of " + significant(row.promised / 1e9, 3) : "";
  return significant(row.rate / 1e9, 3) + promised + " GB/s" + (promised ? " promised" : "");
}

/** Share of the rate in part `part` of the step; without one, over all of it. */
function useOf(row, part) {
  if (!row.use) return 0;
  return part === null ? row.use.reduce((sum, value) => sum + value, 0) / row.use.length : row.use[part];
}

function rowText(row, part, links) {
  if (!row.use) return row.name + " (" + row.technology + "): " + rateText(row) + ", " + timeText(row.latency_s);
  const when = part === null ? "over the step" : "from " + timeText(part * links.part_s) + " to " + timeText((part + 1) * links.part_s);
  return row.name + " (" + row.technology + ", " + rateText(row) + "): " +
    significant(100 * useOf(row, part), 3) + " % " + when +
    (row.alike && row.alike.length > 1 ? ", and " + (row.alike.length - 1) + " links alike" : "");
}

/** Rows of which several links have the same use over the step, as those of symmetric GPUs do, become one: {...row, alike: numbers of rows}. */
function foldedRows(links) {
  const groups = new Map();
  links.rows.forEach((row, i) => {
    const key = [row.technology, row.rate, ...row.use].join(" ");
    if (groups.has(key)) groups.get(key).alike.push(i);
    else groups.set(key, {...row, alike: [i]});
  });
  return [...groups.values()].slice(0, links.shown);
}

/** A link, or one for all that do the same. */
function foldedText(row) {
  return row.name + (row.alike.length > 1 ? " and " + (row.alike.length - 1) + " alike" : "");
}

/** Pixels: sixteen a row, but not less than the scale beside the map takes. */
function heatHeight(links) {
  return Math.max(16 * links.folded.length, 130);
}

function heatOption(links) {
  const rows = links.folded;
  const data = rows.flatMap((row, i) => row.use.map((use, part) => [part, i, use]).filter(([, , use]) => use > 0));
  return {
    tooltip: {...TOOLTIP, formatter: ({value}) => rowText(rows[value[1]], value[0], links)},
    grid: {left: isNarrow() ? 120 : 250, right: isNarrow() ? 20 : 100, top: 8, bottom: 56, show: true, backgroundColor: styleColour("idle"), borderWidth: 0},
    xAxis: {type: "category", data: Array.from({length: links.parts}, (_, part) => timeText(part * links.part_s)), axisLabel: {hideOverlap: true}},
    yAxis: {type: "category", inverse: true, data: rows.map(foldedText), axisLabel: {fontSize: 11, width: isNarrow() ? 110 : 236, overflow: "truncate"}},
    visualMap: {type: "continuous", min: 0, max: 1, calculable: true, show: !isNarrow(), right: 4, top: 8, itemHeight: Math.min(heatHeight(links) - 20, 300),
                formatter: (use) => significant(100 * use, 3) + " %", inRange: {color: HEAT.map(rgb)}},
    dataZoom: zoomOf({xAxisIndex: [0]}),
    series: [{type: "heatmap", data, progressive: 0}],
  };
}

/** The heat map; `choose` gets the row and the part of the step that are clicked. */
function heatNode(links, choose) {
  const {box, chart} = addChart("use of links over time", heatHeight(links) + 64, heatOption(links));
  chart.getZr().on("click", (event) => {
    const at = [event.offsetX, event.offsetY];
    if (chart.containPixel({gridIndex: 0}, at)) choose(...chart.convertFromPixel({gridIndex: 0}, at).reverse());
  });
  repaints.push(() => chart.setOption(heatOption(links)));
  const mark = (part) => chart.setOption({series: [{markLine: {silent: true, symbol: "none", label: {show: false},
    lineStyle: {color: styleColour("ink"), type: "solid"}, data: part === null ? [] : [{xAxis: part}]}}]});
  return {box, chart, mark};
}

/** Lines thicker and in the colour of what they carry; `context` has the drawing's pixels. */
function drawTopology(context, drawing, links, part) {
  context.clearRect(0, 0, drawing.width, drawing.height);
  context.font = "11px system-ui, sans-serif";
  for (const frame of drawing.frames) {
    context.fillStyle = styleColour("track");
    context.fillRect(...frame.box);
    context.fillStyle = styleColour("ink");
    context.fillText(frame.name, frame.box[0] + 4, frame.box[1] + 13);
  }
  for (const line of drawing.lines) {
    const rows = line.rows.map((row) => links.rows[row]);
    const use = Math.max(0, ...rows.map((row) => useOf(row, part)));
    const plain = rows.length > 0 && !rows[0].use;
    context.strokeStyle = plain ? cableColour(rows[0].technology) : rows.length > 0 ? heatColour(use) : styleColour("line");
    context.lineWidth = 1 + 3 * Math.min(use, 1);
    context.beginPath();
    line.points.forEach((point, i) => i === 0 ? context.moveTo(...point) : context.lineTo(...point));
    context.stroke();
  }
  context.lineWidth = 1;
  context.textAlign = "center";
  for (const place of drawing.places) {
    const [x, y, width, height] = place.box;
    context.fillStyle = place.fill;
    context.fillRect(x, y, width, height);
    context.fillStyle = "#333333";  // on the places' own light colours
    const size = Math.min(11, width / (0.58 * place.name.length));
    context.font = size + "px system-ui, sans-serif";
    if (size >= 4) context.fillText(place.name, x + width / 2, y + height / 2 + size / 3);
  }
  context.textAlign = "start";
}

/** How far a point is from a piece of a line. */
function distanceTo([x, y], [ax, ay], [bx, by]) {
  const length = (bx - ax) ** 2 + (by - ay) ** 2;
  const at = length > 0 ? Math.min(Math.max(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length, 0), 1) : 0;
  return Math.hypot(x - ax - at * (bx - ax), y - ay - at * (by - ay));
}

/** What is at a point of the drawing, in words; nothing where there is nothing. */
function wordsAt(point, drawing, links, part) {
  const place = drawing.places.find(({box: [x, y, width, height]}) => point[0] >= x && point[0] <= x + width && point[1] >= y && point[1] <= y + height);
  if (place) return place.name;
  let best = null;
  let nearest = 6;  // pixels
  for (const line of drawing.lines) {
    for (let i = 1; i < line.points.length; ++i) {
      const far = distanceTo(point, line.points[i - 1], line.points[i]);
      if (far < nearest) [nearest, best] = [far, line];
    }
  }
  if (!best) return "";
  return best.rows.length > 0 ? best.rows.map((row) => rowText(links.rows[row], part, links)).join("\n") : (best.title || "slot") + ": unused";
}

/** The drawing as an element, no larger than reads well, and sharp; `partOf()` says which part of the step it shows. */
function topologyNode(links, partOf) {
  const drawing = links.drawing;
  const canvas = element("canvas", {role: "img", "aria-label": "topology coloured by the use of its links"});
  const sharp = 2;
  canvas.width = drawing.width * sharp;
  canvas.height = drawing.height * sharp;
  styled(canvas, {maxWidth: drawing.width + "px", margin: "0 auto"});
  const draw = () => {
    const context = canvas.getContext("2d");
    context.setTransform(sharp, 0, 0, sharp, 0, 0);
    drawTopology(context, drawing, links, partOf());
  };
  const tip = new Tip();
  canvas.addEventListener("pointerleave", () => tip.hide());
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const scale = drawing.width / box.width;
    const text = wordsAt([(event.clientX - box.left) * scale, (event.clientY - box.top) * scale], drawing, links, partOf());
    if (text) tip.show(text, event.clientX, event.clientY);
    else tip.hide();
  });
  repaints.push(draw);
  return {canvas, draw};
}

/** What every link carried: the heat map and the drawing as text. */
function linksTable(links) {
  return {columns: ["link", "alike", "technology", "promised GB/s", "usable GB/s", "mean use %", "highest use %", "highest GB/s"],
          rows: links.folded.map((row) => [row.name, row.alike.length, row.technology, row.promised / 1e9, row.rate / 1e9, 100 * useOf(row, null),
            100 * Math.max(...row.use), row.rate * Math.max(...row.use) / 1e9]),
          note: "promised: the line rate; usable: the part of it that transfers were measured to reach; use: payload over usable"};
}

function linksNode(links) {
  links.folded = foldedRows(links);
  const words = element("span", {}, canDrawCharts() ? "a click chooses a link and a time" : "");
  const when = element("span");
  let part = null;
  const picture = topologyNode(links, () => part);
  const slider = element("input", {type: "range", min: -1, max: links.parts - 1, value: -1, "aria-label": "time of the drawing",
    oninput: () => show(Number(slider.value))});
  const show = (chosen) => {
    part = chosen < 0 ? null : chosen;
    slider.value = chosen;
    when.textContent = part === null ? "whole step" : timeText(part * links.part_s) + " to " + timeText((part + 1) * links.part_s);
    if (heat) heat.mark(part);
    picture.draw();
  };
  const choose = (row, chosen) => {
    show(chosen);
    words.textContent = rowText(links.folded[row], part, links);
  };
  const heat = canDrawCharts() ? heatNode(links, choose) : null;
  show(-1);
  globalThis.linksView = {links, heat, words};
  const levels = [0, 0.01, 0.25, 0.5, 0.75, 1];
  const hidden = links.used - links.folded.reduce((sum, row) => sum + row.alike.length, 0);
  return element("div", {}, element("div", {class: "tools"}, words), heat ? heat.box : null,
    element("p", {class: "note"}, heat === null ? "" : "a row per link, or for all links of the same use; busiest first" + (hidden > 0 ? "; " + hidden + " less busy ones are not shown" : "") +
      "; share of its usable rate that payload takes; a transfer counts evenly over its time"),
    element("div", {class: "tools"}, slider, when), legendNode(levels.map((level) => 100 * level + " %"), levels.map(heatColour)), picture.canvas,
    element("p", {class: "note"}, links.drawing.note), asTable(() => linksTable(links)));
}

/** A cluster's network without a step: how places are joined, and what each kind of link promises and gives. */
function networkNode(network) {
  const picture = topologyNode(network, () => null);
  picture.draw();
  const kinds = [...new Set(network.rows.map((row) => row.technology))];
  return element("div", {}, legendNode(kinds, kinds.map(cableColour)), picture.canvas, element("p", {class: "note"}, network.drawing.note));
}

function promisesNode(network) {
  const most = Math.max(...network.rows.map((row) => row.promised));
  const bars = network.rows.filter((row) => row.promised > row.rate * 1.0005).flatMap((row) => [element("span", {}, row.name), barNode([
    {share: row.rate / most, colour: cableColour(row.technology), title: row.name + " usable " + significant(row.rate / 1e9, 3) + " GB/s"},
    {share: (row.promised - row.rate) / most, colour: COLOURS[13], title: "promised " + significant(row.promised / 1e9, 3) + " GB/s"}]),
    element("span", {}, rateText(row))]);
  return element("div", {}, bars.length > 0 ? element("div", {class: "effects"}, ...bars) : null,
    tableNode({columns: ["link, one direction", "count", "technology", "promised GB/s", "usable GB/s", "usable %", "latency us", "lanes"],
      rows: network.rows.map((row) => [row.name, row.count, row.technology, row.promised / 1e9, row.rate / 1e9, 100 * row.rate / row.promised,
        1e6 * row.latency_s, row.lanes])}),
    element("p", {class: "note"}, "promised: the line rate of the data sheet; usable: the part of it that transfers were measured to reach, which " +
      "simulations take. Where both are equal, the description gives the usable rate alone."));
}
