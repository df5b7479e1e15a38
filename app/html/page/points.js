"use strict";
// Points with many figures: the best beside the next, a heat map of two axes, two figures against each other with their Pareto fronts,
// all of them as parallel coordinates. Uses points_data.js and grid.js, addChart() and the like of charts.js.

class PointsView {
  constructor(points, filters) {
    this.points = points;
    this.filters = filters;
    this.words = points.columns.map((_, column) => wordsOf(points.rows, column));
    this.chosen = 0;
    this.within = null;  // rows inside the ranges that were drawn on the axes
    const {inputs, numbers, results} = columnsOf(points);
    const redraw = () => this.draw();
    this.batch = inputs.find((i) => /global.batch/.test(points.columns[i].name));
    this.right = columnSelect(points, "right", numbers, results[0] ?? numbers[0], redraw);
    this.up = columnSelect(points, "up", numbers, results[1] ?? numbers[0], redraw);
    this.colour = columnSelect(points, "colour by", points.columns.map((_, i) => i).filter((i) => i !== points.fits), "", redraw, "front");
    this.text = element("span");
    this.count = element("span", {"aria-live": "polite"});
    this.legend = element("div");
    this.scatter = addChart("two figures of each point", 440);
    this.parallel = addChart("all figures of each point", 340, this.parallelOption());
    this.parallel.box.style.minWidth = Math.min(62 * points.columns.length, 1360) + "px";  // scrolls by itself where the page is narrower
    this.scatter.chart.on("click", (event) => this.choose(event.data.row));
    this.parallel.chart.on("click", (event) => { if (event.seriesIndex === 0) this.choose(event.dataIndex); });
    this.parallel.chart.on("axisareaselected", () => this.readRanges());
  }

  choose(row) {
    this.chosen = row;
    this.draw();
  }

  readRanges() {
    const rows = this.parallel.chart.getModel().getSeriesByIndex(0).getRawIndicesByActiveState("active");
    this.within = rows.length > 0 ? new Set(rows) : null;
    this.draw();
  }

  /** Fronts of what fits, one for each global batch: steps of other batches do other work. */
  fronts(x, y, passing) {
    const better = (column) => this.points.columns[column].better || -1;
    const groups = new Map();
    for (const i of passing) {
      if (!isFitting(this.points, this.points.rows[i])) continue;
      const batch = this.batch === undefined ? "" : this.points.rows[i][this.batch];
      groups.set(batch, [...(groups.get(batch) || []), i]);
    }
    return [...groups].map(([batch, list]) => ({name: "Pareto front" + (groups.size > 1 ? " of global batch " + batch : ""),
      rows: paretoFront(list.map((i) => this.points.rows[i]), x, y, better(x), better(y)).map((at) => list[at])}));
  }

  /** The colour of each row, and a legend for it. */
  colours(onFront) {
    const column = this.colour.value === "" ? null : Number(this.colour.value);
    if (column === null) return {of: (i) => COLOURS[onFront.has(i) ? 1 : 0], legend: null};
    const values = valuesOf(this.points.rows, column);
    if (values.length <= 12) {
      return {of: (i) => COLOURS[Math.max(values.indexOf(this.points.rows[i][column]), 0) % COLOURS.length], legend: legendNode(values.map((value) => significant(value)), COLOURS)};
    }
    const numbers = values.filter((value) => typeof value === "number");
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    const at = (value) => (value - low) / (high - low || 1);
    const marks = [0, 0.25, 0.5, 0.75, 1];
    return {of: (i) => rampColour(at(this.points.rows[i][column])),
            legend: legendNode(marks.map((mark) => significant(low + mark * (high - low), 3)), marks.map(rampColour))};
  }

  scatterOption() {
    const [x, y] = [Number(this.right.value), Number(this.up.value)];
    const {rows, labels, columns} = this.points;
    const passing = this.filters.rows();
    const fronts = this.fronts(x, y, passing);
    const colours = this.colours(new Set(fronts.flatMap((front) => front.rows)));
    this.legend.replaceChildren(colours.legend || "");
    const data = passing.map((i) => ({row: i, name: labels[i], value: [rows[i][x] ?? "-", rows[i][y] ?? "-"],
      symbol: isFitting(this.points, rows[i]) ? "rect" : "emptyRect", symbolSize: i === this.chosen ? 12 : 7, itemStyle: {
        color: i === this.chosen ? styleColour("ink") : isFitting(this.points, rows[i]) ? colours.of(i) : styleColour("faint"),
        opacity: this.within === null || this.within.has(i) ? 1 : 0.12}}));
    const tip = ({name, value, data: point}) => name + "\n" + columns[x].name + " " + significant(value[0]) + "\n" + columns[y].name + " " + significant(value[1]) +
      (isFitting(this.points, rows[point.row]) ? "" : "\ndoes not fit");
    const short = (value) => significant(value, 3);
    return {
      tooltip: {...TOOLTIP, formatter: tip}, legend: {...LEGEND, show: fronts.length < 8}, grid: {left: isNarrow() ? 60 : 80, right: 20, top: 34, bottom: 74},
      xAxis: numberAxis(columns[x].name, short), yAxis: numberAxis(columns[y].name, short, {nameGap: isNarrow() ? 42 : 56}), dataZoom: zoomOf({xAxisIndex: [0]}),
      series: [
        {name: "points", type: "scatter", symbol: "rect", data, color: COLOURS[0]},
        ...fronts.map((front, k) => ({name: front.name, type: "line", symbol: "none", silent: true, color: COLOURS[(k + 1) % COLOURS.length],
          data: front.rows.map((i) => [rows[i][x], rows[i][y]])})),
      ],
    };
  }

  linesOf(rows) {
    return rows.map((row) => row.map((value) => value ?? "-"));
  }

  parallelOption() {
    const {rows, columns} = this.points;
    const axes = columns.map((column, i) => ({dim: i, name: column.name, nameGap: 12 + 14 * (i % 2),
      ...(this.words[i].length > 0 ? {type: "category", data: this.words[i], axisLabel: {width: 90, overflow: "truncate"}}
                                   : {type: "value", scale: true, minInterval: rows.every((row) => Number.isInteger(row[i])) ? 1 : null, axisLabel: {formatter: (value) => significant(value, 3)}})}));
    return {
      parallel: {left: 60, right: 100, top: 50, bottom: 24, parallelAxisDefault: {nameTextStyle: {fontSize: 11}, axisLabel: {fontSize: 10}}},
      parallelAxis: axes,
      series: [
        {name: "all", type: "parallel", data: this.linesOf(rows), lineStyle: {color: COLOURS[0], opacity: 0.3, width: 1}, inactiveOpacity: 0.03},
        {name: "chosen", type: "parallel", data: [], silent: true, z: 3, lineStyle: {color: styleColour("ink"), opacity: 1, width: 2}, inactiveOpacity: 1},
      ],
    };
  }

  /** What came out of a row, in words: "step time 103 ms", "fits". */
  figuresOf(row) {
    const {inputs} = columnsOf(this.points);
    return this.points.columns.flatMap((column, i) => inputs.includes(i) || row[i] === null || row[i] === undefined ? []
      : i === this.points.fits ? [row[i]] : [column.name.replace(/ \[(.*)\]$/, "") + " " + significant(row[i]) + (/ \[(.*)\]$/.exec(column.name) || ["", ""])[0].replace(/[[\]]/g, "")]);
  }

  draw() {
    const row = this.points.rows[this.chosen];
    this.scatter.chart.setOption({...CHART_BASE, ...this.scatterOption()}, {replaceMerge: ["series"]});
    this.parallel.chart.setOption({series: [{}, {data: this.linesOf(row === undefined ? [] : [row]), lineStyle: {color: styleColour("ink")}}]});
    this.count.textContent = this.within === null ? "" : this.within.size + " of " + this.points.rows.length + " points are in the ranges";
    this.text.textContent = row === undefined ? "" : this.points.labels[this.chosen] + ": " + this.figuresOf(row).join(", ");
  }
}

/** The figures of the best point, and how many there are. */
function pointsCards(points) {
  const {results} = columnsOf(points);
  const all = points.rows.map((_, i) => i);
  const fitting = all.filter((i) => isFitting(points, points.rows[i]));
  const order = results.length > 0 ? ranked(points, all, objectiveOf(points, results)) : [];
  const counts = {name: "points", value: all.length, kind: "", detail: points.fits === undefined ? "" : fitting.length + " of them fit into memory"};
  if (order.length === 0) return [counts];
  return [...results.slice(0, 4).map((i) => {
    const [, name, unit] = /^(.*?)(?: \[(.*)\])?$/.exec(points.columns[i].name);
    return {name: name + " of the best", value: points.rows[order[0]][i], kind: unit || ""};
  }), counts];
}

function pointsNode(points) {
  const {inputs, results} = columnsOf(points);
  const best = element("div");
  const views = [];
  const filters = new Filters(points, inputs, () => {
    best.replaceChildren(bestNode(points, inputs, results, ranked(points, filters.rows(), objectiveOf(points, results))) || "");
    for (const view of views) view.draw();
  });
  if (results.length > 0)
    best.replaceChildren(bestNode(points, inputs, results, ranked(points, filters.rows(), objectiveOf(points, results))) || "");
  const parts = [filters.nodes.length > 0 ? element("div", {class: "tools"}, ...filters.nodes) : null, best];
  const view = new PointsView(points, filters);
  if (results.length > 0) view.chosen = ranked(points, filters.rows(), objectiveOf(points, results))[0] ?? 0;
  globalThis.pointsView = view;
  if (results.length > 0 && inputs.filter((i) => valuesOf(points.rows, i).length > 1).length > 1) {
    const grid = gridNode(points, inputs, results, filters);
    views.push(grid.view);
    parts.push(grid.node);
  }
  views.push(view);
  view.draw();
  repaints.push(() => view.draw());
  parts.push(element("div", {class: "tools"}, element("label", {}, "right", view.right), element("label", {}, "up", view.up),
    element("label", {}, "colour by", view.colour), view.count), view.legend, view.scatter.box, element("div", {class: "details"}, view.text), element("div", {class: "wide"}, view.parallel.box),
    element("p", {class: "note"}, "drag along an axis: a range; a click on it takes the range away"), points.note ? element("p", {class: "note"}, points.note) : null);
  return element("div", {}, ...parts);
}
