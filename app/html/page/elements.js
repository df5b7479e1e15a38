"use strict";
// Elements, figures as texts, tables and legends. Text reaches the page only as text nodes.

/** For series that are no classes of time: colours of the same palette. */
const COLOURS = ["#3156bb", "#f59910", "#6cc683", "#7870e0", "#dd6140", "#18b4ff", "#e77ed3", "#0f6455", "#fbdc5a", "#8a3f01",
                 "#bc217f", "#4e1883", "#8b9098", "#c4c9d0"];

function element(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  for (const child of children) {
    if (child !== null && child !== undefined) node.append(typeof child === "object" ? child : String(child));
  }
  return node;
}

/** An element with properties of its style; the page's policy allows no style in markup. */
function styled(node, style) {
  Object.assign(node.style, style);
  return node;
}

function significant(value, digits = 4) {
  if (value === null || value === undefined) return "-";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return Math.abs(value) >= 1e5 ? value.toLocaleString("en-US") : String(value);
  const text = String(Number(value.toPrecision(digits)));
  return Math.abs(value) >= 1e5 && !text.includes("e") ? Number(text).toLocaleString("en-US") : text;
}

/** `value` to a tenth of what it may be wrong by (`wrong`, in its unit), or three digits where nothing says how much that is. */
function known(value, wrong) {
  if (typeof value !== "number") return significant(value);
  if (value === 0) return "0";
  const last = wrong > 0 ? Math.floor(Math.log10(wrong / 10) + 1e-9) : Math.floor(Math.log10(Math.abs(value))) - 2;
  const rounded = Math.round(value / 10 ** last) * 10 ** last;
  return rounded.toLocaleString("en-US", {minimumFractionDigits: Math.max(-last, 0), maximumFractionDigits: Math.max(-last, 0)});
}

/** The unit in which a time reads well: {name, size in seconds}. */
function timeUnit(seconds) {
  const units = [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["ns", 1e-9]];
  const [name, size] = units.find(([, at]) => Math.abs(seconds) >= at) || units[3];
  return {name, size};
}

function timeText(seconds, digits) {
  if (seconds === 0) return "0";
  const {name, size} = timeUnit(seconds);
  return significant(seconds / size, digits || (name === "ns" ? 3 : 4)) + " " + name;
}

function bytesText(bytes, digits) {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (Math.abs(bytes) >= size) return significant(bytes / size, digits) + " " + unit;
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

/** `numeric`: a column of numbers, in which dashes and words stand where they do. */
function cellNode(cell, numeric) {
  return element("td", {class: numeric ? "number" : null}, significant(cell));
}

/** The table without the columns in which no row has anything. */
function filledColumns(table) {
  const says = (cell) => cell !== null && cell !== undefined && cell !== "";
  const kept = table.columns.map((_, i) => i).filter((i) => table.rows.some((row) => says(row[i])));
  return {...table, columns: kept.map((i) => table.columns[i]), rows: table.rows.map((row) => kept.map((i) => row[i]))};
}

/** Heads are buttons that sort; a table longer than the screen scrolls under them. */
function tableNode(whole) {
  const table = filledColumns(whole);
  const body = element("tbody");
  const numeric = table.columns.map((_, column) => table.rows.some((row) => typeof row[column] === "number"));
  const fill = (rows) => body.replaceChildren(...rows.map((row) => element("tr", {}, ...row.map((cell, column) => cellNode(cell, numeric[column])))));
  const heads = table.columns.map((name, column) => element("th", {scope: "col", class: numeric[column] ? "number" : null},
    element("button", {type: "button", title: "sort", onclick: () => sortBy(column)}, name)));
  const sortBy = (column) => {
    const ascending = heads[column].getAttribute("aria-sort") !== "ascending";
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[column].setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const rows = [...table.rows].sort((a, b) => compareCells(a[column], b[column]));
    fill(ascending ? rows : rows.reverse());
  };
  fill(table.rows);
  const node = element("table", {class: table.columns.length > 9 ? "many" : null}, element("thead", {}, element("tr", {}, ...heads)), body);
  return element("div", {class: table.rows.length > 24 ? "scroll" : "wide"}, node);
}

/** A table that is made when it is opened: what a drawing shows, as text. `make` returns {columns, rows, note}. */
function asTable(make) {
  const node = element("details", {}, element("summary", {}, "as a table"));
  node.addEventListener("toggle", () => {
    if (!node.open || node.children.length > 1) return;
    const table = make();
    node.append(tableNode(table), element("p", {class: "note"}, table.note || ""));
  });
  return node;
}

/** A name that ends in "[s]" or "[B]" without it, and its figure in a unit that reads well. */
function readableEntry({name, value}) {
  const [, words, unit] = /^(.*) \[(s|B)\]$/.exec(name) || [];
  if (!words || typeof value !== "number") return [name, significant(value)];
  return [words, unit === "s" ? timeText(value) : bytesText(value)];
}

function summaryNode(summary) {
  return element("div", {class: "wide"}, element("table", {}, element("tbody", {}, ...summary.map((entry) =>
    element("tr", {}, element("th", {scope: "row"}, readableEntry(entry)[0]), element("td", {}, readableEntry(entry)[1]),
      element("td", {class: "definition"}, entry.definition || ""))))));
}

function swatch(colour) {
  return styled(element("i", {class: "swatch"}), {background: colour});
}

function legendNode(names, colours) {
  return element("div", {class: "legend"}, ...names.map((name, i) => element("span", {}, swatch(colours[i % colours.length]), name)));
}

/** Parts of a whole side by side: `parts` of {share in [0, 1], colour, title, label}; the style hides a label that its part has no room for. */
function barNode(parts, kind) {
  return element("div", {class: "bar " + (kind || ""), role: "img", "aria-label": parts.map((part) => part.title).join(", ")},
    ...parts.filter((part) => part.share > 0).map((part) => styled(element("span", {title: part.title}, part.label ? element("b", {}, part.label) : null),
      {width: 100 * part.share + "%", background: part.colour, color: inkOn(part.colour)})));
}
