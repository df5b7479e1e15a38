"use strict";
// What is asked of points with many figures: axes and results, filters, fronts, the best one beside the next.

/** Numbers of the rows that no other row beats in both columns; `better` is -1 where less is better, 1 where more is. */
function paretoFront(rows, x, y, betterX, betterY) {
  const order = rows.map((_, i) => i).filter((i) => typeof rows[i][x] === "number" && typeof rows[i][y] === "number");
  order.sort((a, b) => (rows[b][x] - rows[a][x]) * betterX || (rows[b][y] - rows[a][y]) * betterY);
  const front = [];
  for (const i of order) {
    if (front.length === 0 || (rows[i][y] - rows[front[front.length - 1]][y]) * betterY > 0) front.push(i);
  }
  return front;
}

/** Texts of a column in the order of their first use; none where it holds numbers. */
function wordsOf(rows, column) {
  return [...new Set(rows.map((row) => row[column]).filter((value) => typeof value === "string"))];
}

/** Distinct values of a column: numbers ascending, or words in the order of their first use. */
function valuesOf(rows, column) {
  const values = [...new Set(rows.map((row) => row[column]).filter((value) => value !== null && value !== undefined))];
  return values.every((value) => typeof value === "number") ? values.sort((a, b) => a - b) : values;
}

/** Columns that were chosen, and those that came out of them: numbers of columns. */
function columnsOf(points) {
  const all = points.columns.map((_, i) => i);
  const isNumber = (i) => wordsOf(points.rows, i).length === 0;
  const inputs = all.filter((i) => points.columns[i].better === 0 && i !== points.fits && points.columns[i].input !== false);
  return {inputs, numbers: all.filter(isNumber), results: all.filter((i) => isNumber(i) && points.columns[i].better !== 0)};
}

function isFitting(points, row) {
  return points.fits === undefined || row[points.fits] === "fits";
}

/** The column by which one point is better than another: throughput where there is one, since steps of other batches do other work. */
function objectiveOf(points, results) {
  return results.find((i) => points.columns[i].name.startsWith("tokens/s")) ?? results[0];
}

/** Of the rows with these numbers, those that fit, best first. */
function ranked(points, rows, column) {
  const better = points.columns[column].better;
  return rows.filter((i) => isFitting(points, points.rows[i]) && typeof points.rows[i][column] === "number")
    .sort((a, b) => (points.rows[b][column] - points.rows[a][column]) * better);
}

/** "pipeline 4 instead of 8" for every input in which two rows differ. */
function inputDifferences(points, inputs, a, b) {
  return inputs.filter((i) => points.rows[a][i] !== points.rows[b][i]).map((i) =>
    points.columns[i].name + " " + significant(points.rows[a][i]) + " instead of " + significant(points.rows[b][i]));
}

/** The best point beside the next best: what was chosen, what came out, by how much. */
function bestNode(points, inputs, results, order) {
  if (order.length < 2) return order.length === 0 ? element("p", {class: "note"}, "no point fits") : null;
  const [best, next] = order;
  const column = objectiveOf(points, results);
  const [first, second] = [points.rows[best][column], points.rows[next][column]];
  const ahead = 100 * Math.abs(first - second) / Math.abs(second || 1);
  const rows = [...inputs, ...results].map((i) => {
    const [a, b] = [points.rows[best][i], points.rows[next][i]];
    const change = results.includes(i) && typeof a === "number" && typeof b === "number" && b !== 0 ? 100 * (a / b - 1) : null;
    return [points.columns[i].name, a, b, change];
  }).filter(([, a, b], i) => a !== b || i >= inputs.length);
  const why = inputDifferences(points, inputs, best, next);
  return element("div", {}, element("p", {}, element("strong", {}, points.labels[best]), " is " + significant(ahead, 2) + " % ahead in " +
    points.columns[column].name + " of " + points.labels[next] + (why.length > 0 ? ": it has " + why.join(", ") + "." : ".")),
    tableNode({columns: ["", "best", "runner-up", "best against runner-up %"], rows}));
}

/** A select for every input: "any", or one of its values; `change` after each choice. */
class Filters {
  constructor(points, inputs, change) {
    this.points = points;
    this.selects = inputs.map((column) => ({column, values: valuesOf(points.rows, column)})).filter(({values}) => values.length > 1 && values.length <= 40)
      .map(({column, values}) => ({column, values, node: element("select", {"aria-label": "filter " + points.columns[column].name, onchange: change},
        element("option", {value: ""}, points.columns[column].name + ": any"),
        ...values.map((value, i) => element("option", {value: i}, points.columns[column].name + ": " + significant(value))))}));
  }
  get nodes() { return this.selects.map(({node}) => node); }
  /** Numbers of the rows that pass. */
  rows() {
    const chosen = this.selects.filter(({node}) => node.value !== "");
    return this.points.rows.map((_, i) => i).filter((i) => chosen.every(({column, values, node}) => this.points.rows[i][column] === values[Number(node.value)]));
  }
}

/** A select of columns; `none` is an entry of its own where it is given. */
function columnSelect(points, name, columns, chosen, change, none) {
  const node = element("select", {"aria-label": name, onchange: change}, none ? element("option", {value: ""}, none) : null,
    ...columns.map((i) => element("option", {value: i}, points.columns[i].name)));
  node.value = chosen ?? "";
  return node;
}

// Viridis (van der Walt, Smith 2015): even steps for every sight, from dark to light.
const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

/** A colour of the ramp, `at` in [0, 1]. */
function rampColour(at) {
  const place = Math.min(Math.max(at, 0), 1) * (RAMP.length - 1);
  const low = Math.min(Math.floor(place), RAMP.length - 2);
  return "rgb(" + RAMP[low].map((value, i) => Math.round(value + (RAMP[low + 1][i] - value) * (place - low))).join(",") + ")";
}
