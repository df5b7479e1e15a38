"use strict";
// The timeline: one row per GPU and stream. Uses element(), tableNode() and the like of report.js.

/** Slices of a row that are wide enough to see, or one per pixel: at most about two per pixel are visited. */
function visibleSlices(row, from, to, pixel, visit) {
  let i = firstAbove(row.end, from);
  while (i < row.begin.length && row.begin[i] < to) {
    if (row.end[i] - row.begin[i] >= pixel) {
      visit(i, row.begin[i], row.end[i]);
      ++i;
      continue;
    }
    // Shorter than a pixel: one bar for everything that begins within it.
    const edge = row.begin[i] + pixel;
    const next = Math.max(i + 1, firstAbove(row.end, edge));
    visit(i, row.begin[i], Math.max(row.end[next - 1], row.begin[i] + pixel));
    i = next;
  }
}

/** Absolute ends from the differences that the page holds. */
function decodeRows(timeline) {
  for (const row of timeline.rows) {
    const count = row.gaps.length;
    row.begin = new Float64Array(count);
    row.end = new Float64Array(count);
    let at = 0;
    for (let i = 0; i < count; ++i) {
      row.begin[i] = (at + row.gaps[i]) * 1e-9;
      at += row.gaps[i] + row.lengths[i];
      row.end[i] = at * 1e-9;
    }
  }
}

/** Slices of fewer pixels are drawn as pixels. */
const WIDE_SLICE = 4;

/** "#rrggbb" as a pixel of an ImageData, seen as 32 bits. */
function pixelOf(colour, alpha) {
  const bytes = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return new Uint32Array(new Uint8ClampedArray([...bytes, alpha]).buffer)[0];
}

const LEAST_LETTERS = 7;  // of a name that still says something

/** The beginning of a name that `fits`, or nothing. */
function shortened(name, fits) {
  let letters = name.length;
  while (letters >= LEAST_LETTERS && !fits(name.slice(0, letters) + "\u2026")) --letters;
  return letters >= LEAST_LETTERS ? name.slice(0, letters) + "\u2026" : "";
}

class TimelineView {
  constructor(timeline, canvas, details) {
    this.timeline = timeline;
    this.colours = timeline.colours || COLOURS;
    this.pixels = this.colours.map((colour) => pixelOf(colour, 255));
    this.faintPixels = this.colours.map((colour) => pixelOf(colour, 38));
    this.canvas = canvas;
    this.details = details;
    this.rowHeight = 20;
    this.axis = 24;
    this.top = 0;
    this.matches = null;
    this.showPath = false;
    this.chosen = null;  // {r, i}: a slice of a row
    this.hasBatches = timeline.rows.some((row) => row.micro_batches.some((batch) => batch > 0));
    this.fit(1350);
    this.reset();
  }

  /** The picture's size in pixels of the page; the canvas has as many as the screen. */
  fit(width) {
    const sharp = globalThis.devicePixelRatio || 1;
    this.wide = width;
    this.high = Math.min(660, this.axis + this.rowHeight * this.timeline.rows.length + 2);
    this.left = width < 640 ? 92 : 170;
    this.canvas.width = Math.round(this.wide * sharp);
    this.canvas.height = Math.round(this.high * sharp);
    this.canvas.style.height = this.high + "px";
    this.canvas.getContext("2d").setTransform(sharp, 0, 0, sharp, 0, 0);
  }

  reset() {
    this.from = 0;
    this.to = this.timeline.step_time_s;
    this.top = 0;
  }

  get width() { return this.wide - this.left; }
  x(time) { return this.left + (time - this.from) / (this.to - this.from) * this.width; }
  time(x) { return this.from + (x - this.left) / this.width * (this.to - this.from); }

  zoom(factor, x) {
    const at = this.time(Math.max(x, this.left));
    const whole = this.timeline.step_time_s;
    const span = Math.min(whole, Math.max((this.to - this.from) * factor, 1e-8));
    const share = (at - this.from) / (this.to - this.from);
    this.from = Math.min(Math.max(at - share * span, 0), whole - span);
    this.to = this.from + span;
  }

  pan(seconds, pixels) {
    const span = this.to - this.from;
    this.from = Math.min(Math.max(this.from + seconds, 0), this.timeline.step_time_s - span);
    this.to = this.from + span;
    const rows = this.timeline.rows.length * this.rowHeight + this.axis;
    this.top = Math.min(Math.max(this.top + pixels, 0), Math.max(rows - this.high, 0));
  }

  search(text) {
    const words = text.toLowerCase();
    this.matches = text ? this.timeline.names.map((name) => name.toLowerCase().includes(words)) : null;
    if (!this.matches) return 0;
    let found = 0;
    for (const row of this.timeline.rows) for (const name of row.names) found += this.matches[name] ? 1 : 0;
    return found;
  }

  /** Shows the next slice behind the middle of the view that the search found. */
  next() {
    if (!this.matches) return false;
    const middle = (this.from + this.to) / 2;
    let best = Infinity;
    let first = Infinity;
    let length = 0;
    for (const row of this.timeline.rows) {
      for (let i = 0; i < row.names.length; ++i) {
        if (!this.matches[row.names[i]]) continue;
        const at = (row.begin[i] + row.end[i]) / 2;
        if (at < first) first = at;
        if (at > middle + 1e-12 && at < best) { best = at; length = row.end[i] - row.begin[i]; }
      }
    }
    const at = best < Infinity ? best : first;
    if (at === Infinity) return false;
    const span = Math.max(Math.min(this.to - this.from, this.timeline.step_time_s / 4), 4 * length);
    this.from = Math.max(at - span / 2, 0);
    this.to = this.from + span;
    return true;
  }

  draw() {
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, this.wide, this.high);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const first = Math.floor(this.top / this.rowHeight);
    const last = Math.min(this.timeline.rows.length, Math.ceil((this.top + this.high - this.axis) / this.rowHeight));
    context.fillStyle = styleColour("track");
    for (let r = first; r < last; ++r) context.fillRect(this.left, this.yOf(r) + 1, this.width, this.rowHeight - 2);
    const slices = this.drawThinSlices(context, first, last);
    for (const [r, i, begin, end] of slices) this.drawSlice(context, r, i, begin, end);
    for (let r = first; r < last; ++r) this.drawBatches(context, r);
    context.fillStyle = styleColour("ink");
    for (let r = first; r < last; ++r) context.fillText(this.timeline.rows[r].name, 0, this.yOf(r) + this.rowHeight / 2, this.left - 8);
    if (this.showPath) this.drawPath(context);
    this.drawChosen(context);
    this.drawAxis(context);
  }

  yOf(r) { return this.axis + r * this.rowHeight - this.top; }
  isFaint(name) { return this.matches !== null && !this.matches[name]; }

  /** Slices of a few pixels go into a picture of one line per row, which is then stretched; returns the others. */
  drawThinSlices(context, first, last) {
    const width = Math.floor(this.width);
    const wide = [];
    if (last <= first) return wide;
    const image = context.createImageData(width, last - first);
    const pixels = new Uint32Array(image.data.buffer);
    const pixel = (this.to - this.from) / width;
    for (let r = first; r < last; ++r) {
      const row = this.timeline.rows[r];
      visibleSlices(row, this.from, this.to, pixel, (i, begin, end) => {
        if (end - begin >= WIDE_SLICE * pixel) {
          wide.push([r, i, begin, end]);
          return;
        }
        const from = Math.max(Math.floor((begin - this.from) / pixel), 0);
        const until = Math.min(Math.max(Math.ceil((end - this.from) / pixel), from + 1), width);
        const faint = this.isFaint(row.names[i]);
        const colour = (faint ? this.faintPixels : this.pixels)[row.kinds[i] % this.colours.length];
        pixels.fill(colour, (r - first) * width + from, (r - first) * width + until);
      });
    }
    this.strips = this.strips || document.createElement("canvas");
    this.strips.width = width;
    this.strips.height = last - first;
    this.strips.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    for (let r = first; r < last; ++r)
      context.drawImage(this.strips, 0, r - first, width, 1, this.left, this.yOf(r) + 1, width, this.rowHeight - 2);
    return wide;
  }

  drawSlice(context, r, i, begin, end) {
    const row = this.timeline.rows[r];
    const x = Math.max(this.x(begin), this.left);
    const width = Math.max(Math.min(this.x(end), this.wide) - x, 1);
    const y = this.yOf(r);
    context.globalAlpha = this.isFaint(row.names[i]) ? 0.15 : 1;
    const colour = this.colours[row.kinds[i] % this.colours.length];
    context.fillStyle = colour;
    context.fillRect(x, y + 1, width - 0.5, this.rowHeight - 2);
    if (width > 14) this.drawLabel(context, row, i, x, y, width, colour);
    context.globalAlpha = 1;
  }

  /** The number of its micro-batch where a step has several, with its name behind where that fits. */
  drawLabel(context, row, i, x, y, width, colour) {
    const name = this.timeline.names[row.names[i]];
    const batch = this.hasBatches && row.micro_batches[i] >= 0 ? String(row.micro_batches[i]) : "";
    const fits = (words) => context.measureText(words).width <= width - 6;
    const whole = (batch ? batch + ": " : "") + name;
    const thin = this.x(row.end[i]) - this.x(row.begin[i]) <= 14;
    const text = fits(whole) ? whole : thin ? "" : batch || shortened(name, fits);
    if (!fits(text)) return;
    context.fillStyle = inkOn(colour);
    context.fillText(text, x + 3, y + this.rowHeight / 2);
  }

  /** The number of a micro-batch once over slices of it that follow each other and are too thin to have it each. */
  drawBatches(context, r) {
    if (!this.hasBatches) return;
    const row = this.timeline.rows[r];
    const from = firstAbove(row.end, this.from);
    const until = Math.min(firstAbove(row.begin, this.to), row.begin.length);
    if (until - from > 5000) return;
    for (let i = from; i < until;) {
      let next = i + 1;
      while (next < until && row.micro_batches[next] === row.micro_batches[i] && row.kinds[next] === row.kinds[i]) ++next;
      this.drawBatch(context, r, i, next - 1);
      i = next;
    }
  }

  drawBatch(context, r, i, last) {
    const row = this.timeline.rows[r];
    const x = Math.max(this.x(row.begin[i]), this.left);
    const width = Math.min(this.x(row.end[last]), this.wide) - x;
    const thin = this.x(row.end[i]) - this.x(row.begin[i]) <= 14;
    if (last === i || !thin || width < 14 || row.micro_batches[i] < 0 || this.isFaint(row.names[i])) return;
    const text = String(row.micro_batches[i]);
    const colour = this.colours[row.kinds[i] % this.colours.length];
    const middle = x + width / 2 - 3.3 * text.length;
    context.fillStyle = colour;  // over the edges between the slices
    context.fillRect(middle - 2, this.yOf(r) + 2, 6.6 * text.length + 4, this.rowHeight - 4);
    context.fillStyle = inkOn(colour);
    context.fillText(text, middle, this.yOf(r) + this.rowHeight / 2);
  }

  drawChosen(context) {
    if (!this.chosen) return;
    const {r, i} = this.chosen;
    const row = this.timeline.rows[r];
    const x = Math.max(this.x(row.begin[i]), this.left);
    const width = Math.max(Math.min(this.x(row.end[i]), this.wide) - x, 2);
    if (this.x(row.end[i]) < this.left || this.yOf(r) < this.axis - this.rowHeight) return;
    context.strokeStyle = styleColour("ink");
    context.lineWidth = 2;
    context.strokeRect(x, this.yOf(r) + 1, width, this.rowHeight - 2);
    context.lineWidth = 1;
  }

  drawPath(context) {
    context.fillStyle = styleColour("ink");
    const path = this.timeline.path;
    let edge = -1;
    for (let i = 0; i < path.begin.length; ++i) {
      if (path.end[i] < this.from || path.begin[i] > this.to || path.row[i] < 0) continue;
      const x = Math.max(this.x(path.begin[i]), this.left);
      const width = Math.max(Math.min(this.x(path.end[i]), this.wide) - x, 1);
      if (x + width < edge + 0.5 && path.row[i] === path.row[i - 1]) continue;
      edge = x + width;
      const y = this.axis + path.row[i] * this.rowHeight - this.top;
      if (y >= this.axis && y < this.high) context.fillRect(x, y + this.rowHeight - 3, width, 3);
    }
  }

  drawAxis(context) {
    context.fillStyle = styleColour("card");
    context.fillRect(0, 0, this.wide, this.axis);
    context.fillStyle = styleColour("faint");
    const rough = (this.to - this.from) / (this.width / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough * 0.999) || rough;
    const ends = this.endLabels(context);
    for (let k = Math.ceil(this.from / step - 1e-9); k * step <= this.to; ++k) {
      const [x, text] = [this.x(k * step), timeText(k * step)];
      const right = x + 7 + context.measureText(text).width;
      context.fillRect(x, this.axis - 5, 1, 5);
      if (right <= this.wide && ends.every((end) => right < end.left || x > end.x)) context.fillText(text, x + 3, this.axis / 2);
    }
    this.drawEnds(context, ends);
  }

  /** Where the steps of several end ({name, at}), and the words left of the lines: of lines too close to each other all words are left of the first. */
  endLabels(context) {
    const labels = [];
    for (const end of [...(this.timeline.ends || [])].sort((a, b) => a.at - b.at)) {
      const x = Math.min(this.x(end.at), this.wide - 1);
      if (x < this.left) continue;
      const before = labels[labels.length - 1];
      const joined = before && x - context.measureText(end.name).width - 8 < before.lines[before.lines.length - 1];
      if (joined) before.lines.push(x);
      if (joined) before.text += ", " + end.name;
      else labels.push({x, text: end.name, lines: [x]});
    }
    return labels.map((label) => ({...label, left: label.x - 6 - context.measureText(label.text).width}));
  }

  drawEnds(context, ends) {
    context.fillStyle = styleColour("ink");
    context.textAlign = "end";
    for (const {x, text, lines} of ends) {
      context.fillText(text, x - 4, this.axis / 2);
      for (const line of lines) context.fillRect(line - 1, 0, 2, this.high);
    }
    context.textAlign = "start";
  }

  /** Numbers of the row and the slice at a place of the picture, or null. */
  sliceAt(x, y) {
    const r = Math.floor((y - this.axis + this.top) / this.rowHeight);
    if (y < this.axis || x < this.left || r < 0 || r >= this.timeline.rows.length) return null;
    const row = this.timeline.rows[r];
    const i = firstAbove(row.end, this.time(x));
    const margin = (this.to - this.from) / this.width;
    return i < row.begin.length && row.begin[i] <= this.time(x) + margin ? {r, i} : null;
  }

  /** What a slice is, in a line or two. */
  words({r, i}) {
    const row = this.timeline.rows[r];
    const batch = row.micro_batches[i];
    return row.name + ", " + this.timeline.kinds[row.kinds[i]] + (batch >= 0 ? ", micro-batch " + batch : "") + ": from " + timeText(row.begin[i]) +
      " to " + timeText(row.end[i]) + ", " + timeText(row.end[i] - row.begin[i]);
  }

  show(found) {
    if (!found) return;
    this.chosen = found;
    const name = this.timeline.names[this.timeline.rows[found.r].names[found.i]];
    const story = this.timeline.stories[name];
    this.details.replaceChildren(element("strong", {}, name), element("div", {}, this.words(found)),
      story ? kernelBar(story) : "", story ? tableNode(story) : "");
  }

  /** The slice beside the chosen one: `along` its row, or in the row `down` at about the same time; brings it into view. */
  step(along, down) {
    const rows = this.timeline.rows;
    if (rows.length === 0) return;
    const {r, i} = this.chosen || {r: 0, i: -1};
    const to = Math.min(Math.max(r + down, 0), rows.length - 1);
    const middle = i < 0 ? this.from : (rows[r].begin[i] + rows[r].end[i]) / 2;
    const next = down ? firstAbove(rows[to].end, middle) : i + along;
    this.show({r: to, i: Math.min(Math.max(next, 0), rows[to].begin.length - 1)});
    this.bringIntoView();
  }

  bringIntoView() {
    const {r, i} = this.chosen;
    const row = this.timeline.rows[r];
    const middle = (row.begin[i] + row.end[i]) / 2;
    if (row.end[i] < this.from || row.begin[i] > this.to) this.pan(middle - (this.from + this.to) / 2, 0);
    const y = r * this.rowHeight;
    if (y < this.top) this.pan(0, y - this.top);
    if (y + this.rowHeight > this.top + this.high - this.axis) this.pan(0, y + this.rowHeight - this.top - this.high + this.axis);
  }
}
