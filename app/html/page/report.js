"use strict";
// Draws the document that lies in the page as JSON, section by section.

function ranksNode(ranks) {
  return element("div", {}, legendNode(ranks.classes.filter((_, i) => ranks.rows.some((row) => row.shares[i] > 0)),
    (ranks.colours || COLOURS).filter((_, i) => ranks.rows.some((row) => row.shares[i] > 0))),
    element("div", {class: "rows one"}, ...ranks.rows.flatMap((row) => [element("span", {}, row.name), sharesBar(ranks, row.shares)])),
    asTable(() => ({columns: ["", ...ranks.classes.map((name) => name + " %")], rows: ranks.rows.map((row) =>
      [row.name, ...row.shares.map((share) => 100 * share)])})));
}

/** Sections of the page in order, for its table of contents: {id, title}. */
const sections = [];

function section(title, node) {
  const id = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 40);
  sections.push({id, title});
  return element("section", {id}, element("h2", {}, title), node);
}

function contentsNode() {
  return element("nav", {class: "toc", "aria-label": "contents"}, ...sections.map(({id, title}) => element("a", {href: "#" + id}, title)));
}

/** Sections that the page has data for: [title, data, how it is drawn, whether that takes the chart library, what is missing without]. */
function drawnParts(page) {
  const few = page.ranks && page.headline && page.ranks.rows.length < 2;
  const some = (data, list) => data && data[list].length > 0 ? data : null;
  return [
    ["What would help", some({effects: page.effects || []}, "effects"), (data) => effectsNode(data.effects)],
    ["Difference", page.waterfall, waterfallNode],
    ["Where the time goes", few ? null : page.ranks, ranksNode],
    ["Layers and kernels", some(page.flame, "phases"), flameGraph],
    ["Timeline", page.timeline, timelineNode],
    ["Memory", page.memory, memoryNode, true],
    ["Links", page.links, linksNode],
    ["Network", page.network, networkNode],
    ["Promised and usable", page.network, promisesNode],
    [page.scatter ? page.scatter.title : "", some(page.scatter, "points"), scatterNode, true],
    ["Kernels under the roofline", some(page.roofline, "points"), rooflineNode, true],
    [page.points ? page.points.title : "", some(page.points, "rows"), pointsNode, true],
  ];
}

function headNode(page) {
  return element("header", {class: "top"}, element("div", {}, element("h1", {}, page.title), page.subtitle ? element("p", {}, page.subtitle) : null),
    themeButton());
}

function start() {
  const page = JSON.parse(document.getElementById("data").textContent);
  document.title = page.title;
  const main = document.getElementById("main");
  const head = headNode(page);
  main.append(head);
  if (page.headline) main.append(headlineNode(page.headline, page.ranks));
  if (page.live) {
    main.append(liveNode(page.live));
    document.documentElement.setAttribute("data-ready", "1");
    return;
  }
  const cards = page.cards || (page.points && page.points.rows.length > 0 ? pointsCards(page.points) : page.headline ? null : summaryCards(page.summary || []));
  if (cards && cards.length > 0) main.append(cardsNode(cards));
  const missing = [];
  for (const [title, data, node, needsCharts] of drawnParts(page)) {
    if (data && (!needsCharts || canDrawCharts())) main.append(section(title, node(data)));
    else if (data) missing.push(title === "Memory" || title.startsWith("Kernels") ? title.toLowerCase() : title);
    if (title === "Links" && data && !canDrawCharts()) missing.push("use of links over time");
  }
  for (const table of (page.tables || []).filter(({rows}) => rows.length > 0)) {
    main.append(section(table.title, element("div", {}, tableNode(table), table.note ? element("p", {class: "note"}, table.note) : null)));
  }
  if (page.summary && page.summary.length > 0) main.append(section("All figures", summaryNode(page.summary)));
  main.append(section("Provenance", summaryNode(page.provenance || [])));
  head.after(contentsNode(), ...(missing.length > 0 ? [missingNode(missing)] : []));
  fitCharts();
  document.documentElement.setAttribute("data-ready", "1");
}

if (typeof document !== "undefined" && document.getElementById("data")) {
  document.addEventListener("DOMContentLoaded", () => {
    const begin = performance.now();
    start();
    addEventListener("resize", () => {
      fitCharts();
      for (const resize of resizes) resize();
    });
    printInLight();
    addEventListener("beforeprint", () => {
      fitCharts();
      for (const resize of resizes) resize();
      flushCharts();
    });
    if (location.hash === "#measure") measure(begin);
  });
}
