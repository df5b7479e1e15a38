"use strict";
// A heat map of two axes of a sweep: in every cell the best point that fits.

class GridView {
  constructor(points, inputs, results, filters) {
    this.points = points;
    this.filters = filters;
    const axes = inputs.filter((i) => valuesOf(points.rows, i).length > 1);
    const redraw = () => this.draw();
    this.right = columnSelect(points, "axis to the right", axes, axes[0], redraw);
    this.up = columnSelect(points, "axis upwards", axes, axes[1], redraw);
    this.colour = columnSelect(points, "colour", results, objectiveOf(points, results), redraw);
    this.logarithmic = element("input", {type: "checkbox", onchange: redraw});
    this.note = element("p", {class: "note"});
    this.grid = addChart("best point of every cell", 420);
    repaints.push(redraw);
  }

  /** By cell: the best row that fits, or null where none does. */
  cells(x, y, colour) {
    const best = new Map();
    for (const i of this.filters.rows()) {
      const row = this.points.rows[i];
      if (row[x] === null || row[y] === null) continue;
      const key = JSON.stringify([row[x], row[y]]);
      const before = best.get(key);
      const found = isFitting(this.points, row) && typeof row[colour] === "number" ? i : null;
      if (before === undefined || before === null) best.set(key, found);
      else if (found !== null && (row[colour] - this.points.rows[before][colour]) * this.points.columns[colour].better > 0) best.set(key, found);
    }
    return best;
  }

  option() {
    const [x, y, colour] = [this.right, this.up, this.colour].map((select) => Number(select.value));
    const {rows, columns, labels} = this.points;
    const [across, upwards] = [valuesOf(rows, x), valuesOf(rows, y)];
    const scale = (value) => this.logarithmic.checked && value > 0 ? Math.log10(value) : value;
    const unscale = (value) => this.logarithmic.checked ? 10 ** value : value;
    const fitting = [], masked = [];
    for (const [key, i] of this.cells(x, y, colour)) {
      const [a, b] = JSON.parse(key);
      const place = [across.indexOf(a), upwards.indexOf(b)];
      if (i === null) masked.push({value: [...place, 0]});
      else fitting.push({row: i, value: [...place, scale(rows[i][colour])]});
    }
    const values = fitting.map(({value}) => value[2]);
    const [low, high] = values.length > 0 ? [Math.min(...values), Math.max(...values)] : [0, 1];
    const better = columns[colour].better;
    for (const cell of fitting) {
      const at = high > low ? (cell.value[2] - low) / (high - low) : 1;
      const fill = rampColour(better > 0 ? at : 1 - at);
      cell.itemStyle = {color: fill};
      cell.label = {color: at === (better > 0 ? 1 : 0) || (better > 0 ? at : 1 - at) > 0.55 ? "#000000" : "#ffffff"};
    }
    const few = across.length * upwards.length <= (isNarrow() ? 30 : 160);
    const tip = ({data, seriesIndex}) => seriesIndex === 1 ? "no point here fits" : labels[data.row] + "\n" + columns.filter((column) => column.better !== 0)
      .map((column) => column.name + " " + significant(rows[data.row][columns.indexOf(column)])).join("\n");
    const axis = (column, list) => ({type: "category", name: columns[column].name, nameLocation: "middle", nameGap: column === x ? 28 : 60,
      data: list.map((value) => significant(value)), axisLabel: {width: 70, overflow: "truncate"}});
    return {
      tooltip: {...TOOLTIP, formatter: tip}, grid: {left: 90, right: 16, top: 10, bottom: 50}, xAxis: axis(x, across), yAxis: axis(y, upwards),
      series: [
        {name: columns[colour].name, type: "heatmap", data: fitting, label: {show: few, formatter: ({value}) => significant(unscale(value[2]), 3)}},
        {name: "does not fit", type: "heatmap", data: masked, itemStyle: {color: styleColour("track"), borderColor: styleColour("line"), borderWidth: 1},
         label: {show: few, color: styleColour("faint"), formatter: "too large"}},
      ],
      visualMap: {show: false, min: -1e300, max: 1e300, dimension: 2, seriesIndex: []},
    };
  }

  draw() {
    this.grid.chart.setOption({...CHART_BASE, ...this.option()}, {notMerge: true});
    this.note.textContent = "a cell shows the best of its points that fit, whatever the other axes are; grey: none fits; light is better" +
      (this.logarithmic.checked ? ", colours by the logarithm" : "");
  }
}

function gridNode(points, inputs, results, filters) {
  const view = new GridView(points, inputs, results, filters);
  view.draw();
  globalThis.gridView = view;
  return {view, node: element("div", {}, element("div", {class: "tools"}, element("label", {}, "right", view.right), element("label", {}, "up", view.up),
    element("label", {}, "colour", view.colour), element("label", {}, view.logarithmic, "logarithmic colours")), view.grid.box, view.note)};
}
