"use strict";
// Points with many figures: two of them against each other with their Pareto front, all of them as parallel coordinates.
// Uses addChart() and the like of charts.js, significant() of elements.js.

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

class PointsView {
  constructor(points) {
    this.points = points;
    this.words = points.columns.map((_, column) => wordsOf(points.rows, column));
    this.chosen = 0;
    this.within = null;  // rows inside the ranges that were drawn on the axes
    const numbers = points.columns.map((_, i) => i).filter((i) => this.words[i].length === 0);
    const select = (name, column) => {
      const node = element("select", {"aria-label": name, onchange: () => this.draw()}, ...numbers.map((i) =>
        element("option", {value: i}, points.columns[i].name)));
      node.value = column;
      return node;
    };
    const wanted = numbers.filter((i) => points.columns[i].better !== 0);
    this.right = select("right", wanted[0] ?? numbers[0]);
    this.up = select("up", wanted[1] ?? numbers[0]);
    this.text = element("span");
    this.count = element("span");
    this.scatter = addChart("two figures of each point", 440);
    this.parallel = addChart("all figures of each point", 340, this.parallelOption());
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

  scatterOption() {
    const [x, y] = [Number(this.right.value), Number(this.up.value)];
    const {rows, labels, columns} = this.points;
    const better = (column) => columns[column].better || -1;
    const front = paretoFront(rows, x, y, better(x), better(y));
    const onFront = new Set(front);
    const data = rows.map((row, i) => ({row: i, name: labels[i], value: [row[x] ?? "-", row[y] ?? "-"], itemStyle: {
      color: i === this.chosen ? styleColour("ink") : COLOURS[onFront.has(i) ? 1 : 0],
      opacity: this.within === null || this.within.has(i) ? 1 : 0.12}, symbolSize: i === this.chosen ? 11 : 6}));
    const tip = ({name, value}) => name + "\n" + columns[x].name + " " + significant(value[0]) + "\n" + columns[y].name + " " + significant(value[1]);
    const short = (value) => significant(value, 3);
    return {
      tooltip: {...TOOLTIP, formatter: tip}, legend: LEGEND, grid: {left: 80, right: 20, top: 34, bottom: 74},
      xAxis: numberAxis(columns[x].name, short), yAxis: numberAxis(columns[y].name, short, {nameGap: 56}), dataZoom: zoomOf({xAxisIndex: [0]}),
      series: [
        {name: "points", type: "scatter", symbol: "rect", data, color: COLOURS[0]},
        {name: "Pareto front", type: "line", symbol: "none", silent: true, color: COLOURS[1], data: front.map((i) => [rows[i][x], rows[i][y]])},
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
                                   : {type: "value", scale: true, axisLabel: {formatter: (value) => significant(value, 3)}})}));
    return {
      parallel: {left: 60, right: 100, top: 50, bottom: 24, parallelAxisDefault: {nameTextStyle: {fontSize: 11}, axisLabel: {fontSize: 10}}},
      parallelAxis: axes,
      series: [
        {name: "all", type: "parallel", data: this.linesOf(rows), lineStyle: {color: COLOURS[0], opacity: 0.3, width: 1}, inactiveOpacity: 0.03},
        {name: "chosen", type: "parallel", data: [], silent: true, z: 3, lineStyle: {color: styleColour("ink"), opacity: 1, width: 2}, inactiveOpacity: 1},
      ],
    };
  }

  draw() {
    const row = this.points.rows[this.chosen];
    this.scatter.chart.setOption({...CHART_BASE, ...this.scatterOption()});
    this.parallel.chart.setOption({series: [{}, {data: this.linesOf(row === undefined ? [] : [row])}]});
    this.count.textContent = this.within === null ? "" : this.within.size + " of " + this.points.rows.length + " points are in the ranges";
    this.text.textContent = row === undefined ? "" : this.points.labels[this.chosen] + ": " + this.points.columns.map((column, i) =>
      column.name + " " + significant(row[i])).join(", ");
  }
}

function pointsNode(points) {
  const view = new PointsView(points);
  view.draw();
  globalThis.pointsView = view;
  repaints.push(() => view.draw());
  return element("div", {}, element("div", {class: "tools"}, "right", view.right, "up", view.up, view.count), view.scatter.box,
    element("div", {class: "details"}, view.text), view.parallel.box,
    element("p", {class: "note"}, "drag along an axis: a range; a click on it takes the range away"),
    points.note ? element("p", {class: "note"}, points.note) : null);
}
