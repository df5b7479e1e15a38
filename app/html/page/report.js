"use strict";
// Draws the document that lies in the page as JSON, section by section.

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

function section(title, node) {
  return element("section", {}, element("h2", {}, title), node);
}

function start() {
  const page = JSON.parse(document.getElementById("data").textContent);
  document.title = page.title;
  const main = document.getElementById("main");
  const head = element("h1", {}, page.title);
  main.append(head);
  if (page.summary) main.append(section("Summary", summaryNode(page.summary)));
  if (page.ranks) main.append(section("Where the time goes", ranksNode(page.ranks)));
  if (page.timeline) main.append(section("Timeline", timelineNode(page.timeline)));
  const missing = [];
  const charted = (title, data, node) => {
    if (canDrawCharts()) main.append(section(title, node(data)));
    else missing.push(title.toLowerCase());
  };
  if (page.memory) charted("Memory", page.memory, memoryNode);
  if (page.links) main.append(section("Links", linksNode(page.links)));
  if (page.links && !canDrawCharts()) missing.push("use of links over time");
  if (page.scatter && page.scatter.points.length > 0) charted(page.scatter.title, page.scatter, scatterNode);
  if (page.roofline && page.roofline.points.length > 0) charted("Kernels under the roofline", page.roofline, rooflineNode);
  if (page.points && page.points.rows.length > 0) charted(page.points.title, page.points, pointsNode);
  if (missing.length > 0) head.after(missingNode(missing));
  for (const table of page.tables || []) {
    main.append(section(table.title, element("div", {}, tableNode(table), table.note ? element("p", {class: "note"}, table.note) : null)));
  }
  main.append(section("Provenance", summaryNode(page.provenance || [])));
  fitCharts();
  document.documentElement.setAttribute("data-ready", "1");
}

if (typeof document !== "undefined") {
  document.addEventListener("DOMContentLoaded", () => {
    const begin = performance.now();
    start();
    addEventListener("resize", fitCharts);
    addEventListener("beforeprint", fitCharts);
    if (location.hash === "#measure") measure(begin);
  });
}
