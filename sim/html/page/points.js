"use strict";
// Points with many figures: two of them against each other with their Pareto front, all of them as parallel coordinates.
// Uses element(), significant() and the like of report.js.

/** Where the values of a column lie from 0 to 1; texts lie in the order of their first use. */
class PointScale {
  constructor(rows, column) {
    this.words = [];
    const values = rows.map((row) => this.number(row[column], true)).filter((value) => value !== null);
    this.low = Math.min(...values);
    this.high = Math.max(...values);
  }

  number(value, add) {
    if (typeof value === "number") return value;
    if (value === null || value === undefined) return null;
    if (add && !this.words.includes(value)) this.words.push(value);
    return this.words.indexOf(value);
  }

  at(value) {
    const number = this.number(value, false);
    if (number === null || !Number.isFinite(this.low)) return null;
    return this.high > this.low ? (number - this.low) / (this.high - this.low) : 0.5;
  }

  text(share) {
    const value = this.low + share * (this.high - this.low);
    return this.words.length > 0 ? this.words[Math.round(value)] : significant(value, 3);
  }
}

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

class PointsView {
  constructor(points) {
    this.points = points;
    this.scales = points.columns.map((_, column) => new PointScale(points.rows, column));
    this.chosen = 0;
    const numbers = points.columns.map((_, i) => i).filter((i) => this.scales[i].words.length === 0);
    const select = (name, column) => {
      const node = element("select", {"aria-label": name, onchange: () => this.draw()}, ...numbers.map((i) =>
        element("option", {value: i}, points.columns[i].name)));
      node.value = column;
      return node;
    };
    const wanted = numbers.filter((i) => points.columns[i].better !== 0);
    this.right = select("right", wanted[0] ?? numbers[0]);
    this.up = select("up", wanted[1] ?? numbers[0]);
    this.words = element("span");
    this.scatter = this.canvas("two figures of each point", 420, (x, y) => this.nearestPoint(x, y));
    this.parallel = this.canvas("all figures of each point", 300, (x, y) => this.nearestLine(x, y));
  }

  canvas(label, height, nearest) {
    const canvas = element("canvas", {role: "img", "aria-label": label, onclick: (event) => {
      const box = canvas.getBoundingClientRect();
      this.choose(nearest((event.clientX - box.left) * canvas.width / box.width, (event.clientY - box.top) * canvas.height / box.height));
    }});
    canvas.width = 1350;
    canvas.height = height;
    return canvas;
  }

  choose(row) {
    this.chosen = row;
    this.draw();
  }

  /** Pixel of a row in the scatter; null where it lacks one of the figures. */
  place(row) {
    const x = this.scales[this.right.value].at(row[this.right.value]);
    const y = this.scales[this.up.value].at(row[this.up.value]);
    if (x === null || y === null) return null;
    return [60 + x * (this.scatter.width - 90), this.scatter.height - 30 - y * (this.scatter.height - 60)];
  }

  /** Pixel of a row on axis `column` of the parallel coordinates. */
  crossing(row, column) {
    const y = this.scales[column].at(row[column]);
    const step = (this.parallel.width - 140) / Math.max(1, this.points.columns.length - 1);
    return y === null ? null : [70 + column * step, this.parallel.height - 30 - y * (this.parallel.height - 70)];
  }

  nearestOf(distance) {
    let nearest = this.chosen;
    let least = Infinity;
    this.points.rows.forEach((row, i) => {
      const far = distance(row);
      if (far < least) [least, nearest] = [far, i];
    });
    return nearest;
  }

  nearestPoint(x, y) {
    return this.nearestOf((row) => {
      const at = this.place(row);
      return at === null ? Infinity : Math.hypot(at[0] - x, at[1] - y);
    });
  }

  nearestLine(x, y) {
    const step = (this.parallel.width - 140) / Math.max(1, this.points.columns.length - 1);
    const column = Math.min(this.points.columns.length - 1, Math.max(0, Math.round((x - 70) / step)));
    return this.nearestOf((row) => {
      const at = this.crossing(row, column);
      return at === null ? Infinity : Math.abs(at[1] - y);
    });
  }

  drawScatter() {
    const context = this.scatter.getContext("2d");
    const [x, y] = [Number(this.right.value), Number(this.up.value)];
    context.clearRect(0, 0, this.scatter.width, this.scatter.height);
    context.font = "11px system-ui, sans-serif";
    const better = (column) => this.points.columns[column].better || -1;
    const front = paretoFront(this.points.rows, x, y, better(x), better(y));
    context.strokeStyle = COLOURS[1];
    context.beginPath();
    for (const i of front) context.lineTo(...this.place(this.points.rows[i]));
    context.stroke();
    this.points.rows.forEach((row, i) => {
      const at = this.place(row);
      if (at === null) return;
      context.fillStyle = i === this.chosen ? "#000000" : COLOURS[front.includes(i) ? 1 : 0];
      const size = i === this.chosen ? 5 : 3;
      context.fillRect(at[0] - size, at[1] - size, 2 * size, 2 * size);
    });
    context.fillStyle = "#777777";
    for (const share of [0, 0.5, 1]) {
      context.fillText(this.scales[x].text(share), 60 + share * (this.scatter.width - 130), this.scatter.height - 8);
      context.fillText(this.scales[y].text(share), 4, this.scatter.height - 30 - share * (this.scatter.height - 60));
    }
  }

  drawParallel() {
    const context = this.parallel.getContext("2d");
    context.clearRect(0, 0, this.parallel.width, this.parallel.height);
    context.font = "11px system-ui, sans-serif";
    const line = (row, colour, width) => {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      this.points.columns.forEach((_, column) => {
        const at = this.crossing(row, column);
        if (at !== null) context.lineTo(...at);
      });
      context.stroke();
    };
    for (const row of this.points.rows) line(row, COLOURS[0] + "40", 1);
    if (this.points.rows.length > 0) line(this.points.rows[this.chosen], "#000000", 2);
    context.fillStyle = "#777777";
    this.points.columns.forEach((column, i) => {
      const [x] = this.crossing(this.points.rows[0] || [], i) || [70 + i * (this.parallel.width - 140) / Math.max(1, this.points.columns.length - 1)];
      context.fillRect(x, 40, 1, this.parallel.height - 70);
      context.fillText(column.name, x - 40, 14 + 12 * (i % 2));
      for (const share of [0, 1]) {
        context.fillText(this.scales[i].text(share), x + 3, this.parallel.height - 30 - share * (this.parallel.height - 70));
      }
    });
  }

  draw() {
    this.drawScatter();
    this.drawParallel();
    const row = this.points.rows[this.chosen];
    this.words.textContent = row === undefined ? "" : this.points.labels[this.chosen] + ": " + this.points.columns.map((column, i) =>
      column.name + " " + significant(row[i])).join(", ");
  }
}

function pointsNode(points) {
  const view = new PointsView(points);
  view.draw();
  globalThis.pointsView = view;
  return element("div", {}, element("div", {class: "tools"}, "right", view.right, "up", view.up), view.scatter,
    element("div", {class: "details"}, view.words), view.parallel,
    points.note ? element("p", {class: "note"}, points.note) : null);
}
