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

class TimelineView {
  constructor(timeline, canvas, details) {
    this.timeline = timeline;
    this.colours = timeline.colours || COLOURS;
    this.pixels = this.colours.map((colour) => pixelOf(colour, 255));
    this.faintPixels = this.colours.map((colour) => pixelOf(colour, 38));
    this.canvas = canvas;
    this.details = details;
    this.rowHeight = 16;
    this.left = 150;
    this.axis = 22;
    this.top = 0;
    this.matches = null;
    this.showPath = false;
    this.reset();
  }

  reset() {
    this.from = 0;
    this.to = this.timeline.step_time_s;
    this.top = 0;
  }

  get width() { return this.canvas.width - this.left; }
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
    this.top = Math.min(Math.max(this.top + pixels, 0), Math.max(rows - this.canvas.height, 0));
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
    const height = this.canvas.height;
    context.clearRect(0, 0, this.canvas.width, height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const first = Math.floor(this.top / this.rowHeight);
    const last = Math.min(this.timeline.rows.length, Math.ceil((this.top + height - this.axis) / this.rowHeight));
    const wide = this.drawThinSlices(context, first, last);
    for (const [r, i, begin, end] of wide) this.drawSlice(context, r, i, begin, end);
    for (let r = first; r < last; ++r) {
      context.fillStyle = "#444444";
      context.fillText(this.timeline.rows[r].name, 4, this.yOf(r) + this.rowHeight / 2, this.left - 8);
    }
    if (this.showPath) this.drawPath(context);
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
    const width = Math.max(Math.min(this.x(end), this.canvas.width) - x, 1);
    const y = this.yOf(r);
    context.globalAlpha = this.isFaint(row.names[i]) ? 0.15 : 1;
    context.fillStyle = this.colours[row.kinds[i] % this.colours.length];
    context.fillRect(x, y + 1, width - 0.5, this.rowHeight - 2);
    if (width > 40) this.drawLabel(context, this.timeline.names[row.names[i]], x, y, width);
    context.globalAlpha = 1;
  }

  drawLabel(context, text, x, y, width) {
    const fitting = Math.floor(width / 6.2);
    context.fillStyle = "#ffffff";
    context.fillText(text.length > fitting ? text.slice(0, fitting) : text, x + 3, y + this.rowHeight / 2);
  }

  drawPath(context) {
    context.fillStyle = "#000000";
    const path = this.timeline.path;
    let edge = -1;
    for (let i = 0; i < path.begin.length; ++i) {
      if (path.end[i] < this.from || path.begin[i] > this.to || path.row[i] < 0) continue;
      const x = Math.max(this.x(path.begin[i]), this.left);
      const width = Math.max(Math.min(this.x(path.end[i]), this.canvas.width) - x, 1);
      if (x + width < edge + 0.5 && path.row[i] === path.row[i - 1]) continue;
      edge = x + width;
      const y = this.axis + path.row[i] * this.rowHeight - this.top;
      if (y >= this.axis && y < this.canvas.height) context.fillRect(x, y + this.rowHeight - 3, width, 3);
    }
  }

  drawAxis(context) {
    context.fillStyle = "#ffffff";
    context.fillRect(0, 0, this.canvas.width, this.axis);
    context.fillStyle = "#444444";
    const rough = (this.to - this.from) / 8;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough * 0.999) || rough;
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      context.fillRect(this.x(at), this.axis - 5, 1, 5);
      context.fillText(timeText(at), this.x(at) + 3, this.axis / 2);
    }
  }

  /** Row and slice at a place of the canvas, or null. */
  sliceAt(x, y) {
    const r = Math.floor((y - this.axis + this.top) / this.rowHeight);
    if (y < this.axis || x < this.left || r < 0 || r >= this.timeline.rows.length) return null;
    const row = this.timeline.rows[r];
    const i = firstAbove(row.end, this.time(x));
    const margin = (this.to - this.from) / this.width;
    return i < row.begin.length && row.begin[i] <= this.time(x) + margin ? {row, i} : null;
  }

  show(found) {
    if (!found) return;
    const {row, i} = found;
    const name = this.timeline.names[row.names[i]];
    const story = this.timeline.stories[name];
    const batch = row.micro_batches[i];
    this.details.replaceChildren(
      element("strong", {}, name), element("div", {}, row.name + ", " + this.timeline.kinds[row.kinds[i]] +
        (batch >= 0 ? ", micro-batch " + batch : "") + ": from " + timeText(row.begin[i]) + " to " + timeText(row.end[i]) +
        ", " + timeText(row.end[i] - row.begin[i])),
      story ? tableNode(story) : null);
  }
}

function listen(view) {
  const canvas = view.canvas;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    const scale = canvas.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  };
  let queued = false;
  const redraw = () => {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => { queued = false; view.draw(); });
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.shiftKey) view.pan(0, event.deltaY);
    else view.zoom(Math.exp(event.deltaY * 0.002), place(event)[0]);
    redraw();
  }, {passive: false});
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => { drag = {at: place(event), moved: false}; });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag || event.buttons === 0) return;
    const [x, y] = place(event);
    if (Math.abs(x - drag.at[0]) + Math.abs(y - drag.at[1]) > 2) drag.moved = true;
    view.pan(view.time(drag.at[0]) - view.time(x), drag.at[1] - y);
    drag.at = [x, y];
    redraw();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) view.show(view.sliceAt(...place(event)));
    drag = null;
  });
  canvas.addEventListener("dblclick", () => { view.reset(); redraw(); });
  canvas.addEventListener("keydown", (event) => {
    const span = view.to - view.from;
    const act = {w: () => view.zoom(0.8, view.left + view.width / 2), s: () => view.zoom(1.25, view.left + view.width / 2),
                 a: () => view.pan(-span / 8, 0), d: () => view.pan(span / 8, 0), ArrowLeft: () => view.pan(-span / 8, 0),
                 ArrowRight: () => view.pan(span / 8, 0), ArrowUp: () => view.pan(0, -48), ArrowDown: () => view.pan(0, 48)}[event.key];
    if (!act) return;
    event.preventDefault();
    act();
    redraw();
  });
  return redraw;
}

function timelineNode(timeline) {
  decodeRows(timeline);
  const canvas = element("canvas", {tabindex: "0", role: "img", "aria-label": "timeline of GPUs and streams"});
  canvas.width = 1350;
  canvas.height = Math.min(640, 24 + 16 * timeline.rows.length);
  const details = element("div", {class: "details"}, "Click a slice. Wheel: zoom; drag: pan; shift + wheel: rows; double click: all; " +
    "keys w s a d.");
  const view = new TimelineView(timeline, canvas, details);
  globalThis.timelineView = view;
  const redraw = listen(view);
  const found = element("span");
  const input = element("input", {type: "search", placeholder: "search", "aria-label": "search slices", oninput: () => {
    const count = view.search(input.value);
    found.textContent = input.value ? count + " slices" : "";
    redraw();
  }});
  const path = element("input", {type: "checkbox", onchange: () => { view.showPath = path.checked; redraw(); }});
  view.draw();
  return element("div", {}, legendNode(timeline.kinds, COLOURS), element("div", {class: "tools"}, input,
    element("button", {onclick: () => { view.next(); redraw(); }}, "next"), found,
    element("button", {onclick: () => { view.reset(); redraw(); }}, "all"),
    timeline.path ? element("label", {}, path, " critical path") : null), canvas, details,
    timeline.note ? element("p", {class: "note"}, timeline.note) : null);
}
