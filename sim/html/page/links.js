"use strict";
// How busy the links were: a heat map over time, and the topology coloured by it. Uses element() and the like of report.js.

/** From light grey over yellow and red to black; `use` is a share of a link's rate. */
function heatColour(use) {
  if (use <= 0) return "#e9e9e9";
  const stops = [[255, 250, 205], [254, 178, 76], [240, 59, 32], [120, 0, 38], [30, 0, 10]];
  const at = Math.min(use, 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  const mix = stops[low].map((value, i) => Math.round(value + (stops[low + 1][i] - value) * (at - low)));
  return "rgb(" + mix.join(",") + ")";
}

/** Share of the rate in part `part` of the step; without one, over all of it. */
function useOf(row, part) {
  return part === null ? row.use.reduce((sum, value) => sum + value, 0) / row.use.length : row.use[part];
}

function rowText(row, part, links) {
  const when = part === null ? "over the step" : "from " + timeText(part * links.part_s) + " to " + timeText((part + 1) * links.part_s);
  return row.name + " (" + row.technology + ", " + significant(row.rate / 1e9) + " GB/s): " +
    significant(100 * useOf(row, part), 3) + " % " + when;
}

const HEAT_ROW = 9;

function drawHeat(context, width, links, chosen) {
  links.rows.slice(0, links.shown).forEach((row, i) => row.use.forEach((use, part) => {
    context.fillStyle = heatColour(use);
    const from = Math.floor(part / links.parts * width);
    context.fillRect(from, i * HEAT_ROW, Math.floor((part + 1) / links.parts * width) - from, HEAT_ROW - 1);
  }));
  if (chosen === null) return;
  context.strokeStyle = "#000000";
  context.strokeRect(chosen / links.parts * width, 0, width / links.parts, links.shown * HEAT_ROW);
}

function drawTopology(context, drawing, links, part) {
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, drawing.width, drawing.height);
  context.font = "10px system-ui, sans-serif";
  for (const frame of drawing.frames) {
    context.fillStyle = "#f5f5f5";
    context.fillRect(...frame.box);
    context.fillStyle = "#333333";
    context.fillText(frame.name, frame.box[0] + 4, frame.box[1] + 12);
  }
  for (const line of drawing.lines) {
    const use = Math.max(0, ...line.rows.map((row) => useOf(links.rows[row], part)));
    context.strokeStyle = line.rows.length > 0 ? heatColour(use) : "#d0d0d0";
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
    context.fillStyle = "#333333";
    const size = Math.min(11, width / (0.58 * place.name.length));
    context.font = size + "px system-ui, sans-serif";
    if (size >= 4) context.fillText(place.name, x + width / 2, y + height / 2 + size / 3);
  }
  context.textAlign = "start";
}

function linksNode(links) {
  const heat = element("canvas", {role: "img", "aria-label": "use of links over time"});
  heat.width = 1350;
  heat.height = links.shown * HEAT_ROW;
  const picture = element("canvas", {role: "img", "aria-label": "topology coloured by the use of its links"});
  picture.width = links.drawing.width;
  picture.height = links.drawing.height;
  const words = element("span", {}, "a click chooses a link and a time");
  const when = element("span");
  let part = null;
  const slider = element("input", {type: "range", min: -1, max: links.parts - 1, value: -1, "aria-label": "time of the drawing",
    oninput: () => show(Number(slider.value))});
  const show = (chosen) => {
    part = chosen < 0 ? null : chosen;
    slider.value = chosen;
    when.textContent = part === null ? "whole step" : timeText(part * links.part_s) + " to " + timeText((part + 1) * links.part_s);
    drawHeat(heat.getContext("2d"), heat.width, links, part);
    drawTopology(picture.getContext("2d"), links.drawing, links, part);
  };
  const choose = (row, chosen) => {
    show(chosen);
    words.textContent = rowText(links.rows[row], part, links);
  };
  heat.addEventListener("click", (event) => {
    const box = heat.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top) / box.height * links.shown);
    const at = Math.floor((event.clientX - box.left) / box.width * links.parts);
    choose(Math.min(Math.max(row, 0), links.shown - 1), Math.min(Math.max(at, 0), links.parts - 1));
  });
  show(-1);
  globalThis.linksView = {links, choose, show, words, heat, picture};
  const levels = [0, 0.01, 0.25, 0.5, 0.75, 1];
  const hidden = links.used - links.shown;
  return element("div", {}, legendNode(levels.map((level) => 100 * level + " %"), levels.map(heatColour)),
    element("div", {class: "tools"}, words), heat,
    element("p", {class: "note"}, "a row per link, busiest first" + (hidden > 0 ? "; " + hidden + " less busy ones are not shown" : "") +
      "; share of its usable rate that payload takes; a transfer counts evenly over its time"),
    element("div", {class: "tools"}, slider, when), picture, element("p", {class: "note"}, links.drawing.note));
}
