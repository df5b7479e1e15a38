"use strict";
// Elements, figures as texts, tables and legends. Text reaches the page only as text nodes.

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
