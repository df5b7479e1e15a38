"use strict";
// Draws the document that lies in the page as JSON. Text reaches the page only as text nodes.

const COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#44bb99", "#bbcc33", "#99ddff",
                 "#882255", "#999933", "#777777", "#e2e2e2"];

function element(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  for (const child of children) {
    if (child !== null && child !== undefined) node.append(typeof child === "object" ? child : String(child));
  }
  return node;
}

function significant(value, digits = 4) {
  if (value === null || value === undefined) return "-";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value);
  return String(Number(value.toPrecision(digits)));
}

function timeText(seconds) {
  const size = Math.abs(seconds);
  if (size >= 1) return significant(seconds) + " s";
  if (size >= 1e-3) return significant(seconds * 1e3) + " ms";
  if (size >= 1e-6) return significant(seconds * 1e6) + " us";
  return significant(seconds * 1e9, 3) + " ns";
}

function bytesText(bytes) {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (Math.abs(bytes) >= size) return significant(bytes / size) + " " + unit;
  }
  return bytes + " B";
}

/** First index whose value in the ascending `list` is above `value`. */
function firstAbove(list, value) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

// --- tables ---

function compareCells(a, b) {
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}

function tableNode(table) {
  const body = element("tbody");
  const fill = (rows) => body.replaceChildren(...rows.map((row) => element("tr", {}, ...row.map((cell) =>
    element("td", {class: typeof cell === "number" ? "number" : ""}, significant(cell))))));
  let sortedBy = -1;
  let ascending = true;
  const sortBy = (column) => {
    ascending = sortedBy === column ? !ascending : true;
    sortedBy = column;
    const rows = [...table.rows].sort((a, b) => compareCells(a[column], b[column]));
    fill(ascending ? rows : rows.reverse());
  };
  fill(table.rows);
  const head = element("tr", {}, ...table.columns.map((name, column) => element("th", {
    class: "sortable " + (table.rows.some((row) => typeof row[column] === "number") ? "number" : ""),
    title: "sort", onclick: () => sortBy(column)}, name)));
  const node = element("table", {}, element("thead", {}, head), body);
  return table.rows.length > 24 ? element("div", {class: "scroll"}, node) : node;
}

function summaryNode(summary) {
  return element("table", {}, ...summary.map((entry) => element("tr", {}, element("th", {}, entry.name),
    element("td", {}, significant(entry.value)), element("td", {class: "definition"}, entry.definition || ""))));
}

function legendNode(names, colours) {
  return element("div", {class: "legend"}, ...names.map((name, i) => {
    const mark = element("i");
    mark.style.background = colours[i % colours.length];
    return element("span", {}, mark, name);
  }));
}

// --- where the time goes ---

function ranksNode(ranks) {
  const bar = (shares) => element("div", {class: "bar"}, ...shares.map((share, i) => {
    const part = element("span", {title: ranks.classes[i] + " " + significant(100 * share, 3) + " %"});
    part.style.width = 100 * share + "%";
    part.style.background = COLOURS[i % COLOURS.length];
    return part;
  }));
  return element("div", {}, legendNode(ranks.classes, COLOURS), element("table", {},
    ...ranks.rows.map((row) => element("tr", {}, element("th", {}, row.name), element("td", {}, bar(row.shares))))));
}

// --- measured against simulated ---

function drawScatter(context, width, height, scatter) {
  context.clearRect(0, 0, width, height);
  const values = scatter.points.flatMap((point) => [point.x, point.y]);
  const low = Math.log(Math.min(...values) / 1.3);
  const high = Math.log(Math.max(...values) * 1.3);
  const at = (value) => (Math.log(value) - low) / (high - low);
  context.strokeStyle = "#999999";
  context.beginPath();
  context.moveTo(0, height);
  context.lineTo(width, 0);
  context.stroke();
  const groups = [...new Set(scatter.points.map((point) => point.group))];
  for (const point of scatter.points) {
    context.fillStyle = COLOURS[groups.indexOf(point.group) % COLOURS.length];
    context.fillRect(at(point.x) * width - 2, height - at(point.y) * height - 2, 4, 4);
  }
  return groups;
}

function scatterNode(scatter) {
  const canvas = element("canvas", {role: "img", "aria-label": scatter.title});
  canvas.width = 700;
  canvas.height = 700;
  canvas.style.maxWidth = "700px";
  const groups = drawScatter(canvas.getContext("2d"), canvas.width, canvas.height, scatter);
  return element("div", {}, legendNode(groups, COLOURS), canvas, element("p", {class: "note"}, scatter.note));
}

// --- the page ---

function section(title, node) {
  return element("section", {}, element("h2", {}, title), node);
}

function start() {
  const page = JSON.parse(document.getElementById("data").textContent);
  document.title = page.title;
  const main = document.getElementById("main");
  main.append(element("h1", {}, page.title));
  if (page.summary) main.append(section("Summary", summaryNode(page.summary)));
  if (page.ranks) main.append(section("Where the time goes", ranksNode(page.ranks)));
  if (page.timeline) main.append(section("Timeline", timelineNode(page.timeline)));
  if (page.memory) main.append(section("Memory", memoryNode(page.memory)));
  if (page.links) main.append(section("Links", linksNode(page.links)));
  if (page.scatter && page.scatter.points.length > 0) main.append(section(page.scatter.title, scatterNode(page.scatter)));
  if (page.roofline && page.roofline.points.length > 0) main.append(section("Kernels under the roofline", rooflineNode(page.roofline)));
  if (page.points && page.points.rows.length > 0) main.append(section(page.points.title, pointsNode(page.points)));
  for (const table of page.tables || []) {
    main.append(section(table.title, element("div", {}, tableNode(table), table.note ? element("p", {class: "note"}, table.note) : null)));
  }
  main.append(section("Provenance", summaryNode(page.provenance || [])));
  document.documentElement.setAttribute("data-ready", "1");
}

/** Writes into the page how long it took to appear and to zoom; for tests (`report.html#measure`). */
function measure(begin) {
  const root = document.documentElement;
  root.setAttribute("data-start-ms", performance.now() - begin);
  if (globalThis.pointsView) {
    const points = globalThis.pointsView;
    points.choose(points.nearestPoint(...points.place(points.points.rows[points.points.rows.length - 1])));
    root.setAttribute("data-chosen", points.chosen);
  }
  if (globalThis.linksView) {
    const links = globalThis.linksView;
    const busiest = links.links.rows[0].use.indexOf(Math.max(...links.links.rows[0].use));
    links.choose(0, busiest);
    root.setAttribute("data-link", links.words.textContent);
    root.setAttribute("data-heat", links.heat.getContext("2d").getImageData(
      Math.floor((busiest + 0.5) / links.links.parts * links.heat.width), 3, 1, 1).data.join(" "));
  }
  const view = globalThis.timelineView;
  if (!view) return;
  let slowest = 0;
  for (let step = 0; step < 40; ++step) {
    view.zoom(step < 20 ? 0.7 : 1 / 0.7, 700);
    let frame = Infinity;
    for (let again = 0; again < 3; ++again) {  // the best of three: others may want the processor
      const before = performance.now();
      view.draw();
      view.canvas.getContext("2d").getImageData(0, 0, 1, 1);  // waits for the drawing itself
      frame = Math.min(frame, performance.now() - before);
    }
    slowest = Math.max(slowest, frame);
  }
  root.setAttribute("data-frame-ms", slowest);
  view.reset();
  view.show(view.sliceAt(view.left + 5, view.axis + 5));
  root.setAttribute("data-found", view.search("forward"));
}

if (typeof document !== "undefined") {
  document.addEventListener("DOMContentLoaded", () => {
    const begin = performance.now();
    start();
    if (location.hash === "#measure") measure(begin);
  });
}
