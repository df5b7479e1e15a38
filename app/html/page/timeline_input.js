"use strict";
// Mouse, keyboard and the elements around the timeline (timeline.js).

/** The kernels of a segment one after the other. `story` has columns "kernel", "kind", "shape", "us". */
function kernelBar(story) {
  const whole = story.rows.reduce((sum, row) => sum + row[3], 0);
  const kinds = [...new Set(story.rows.map((row) => row[1]))];
  return barNode(story.rows.map((row) => ({share: whole > 0 ? row[3] / whole : 0, colour: COLOURS[kinds.indexOf(row[1]) % COLOURS.length], label: row[0],
    title: row[0] + " " + significant(row[3]) + " us"})), "tall");
}

/** A box beside the pointer that says what is under it. */
class Tip {
  constructor() {
    this.node = element("div", {class: "tip", hidden: ""});
    document.body.append(this.node);
  }
  show(text, x, y) {
    this.node.textContent = text;
    this.node.hidden = false;
    const box = this.node.getBoundingClientRect();
    styled(this.node, {left: Math.min(x + 14, innerWidth - box.width - 8) + "px", top: Math.min(y + 14, innerHeight - box.height - 8) + "px"});
  }
  hide() { this.node.hidden = true; }
}

function placeIn(canvas, event, view) {
  const box = canvas.getBoundingClientRect();
  return [(event.clientX - box.left) * view.wide / box.width, (event.clientY - box.top) * view.high / box.height];
}

/** A function that draws with the next frame, however often it is called. */
function drawnOnce(view) {
  let queued = false;
  return () => {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => { queued = false; view.draw(); });
  };
}

function listenToPointer(view, redraw) {
  const canvas = view.canvas;
  const tip = new Tip();
  let drag = null;
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey && document.activeElement !== canvas) return;  // the page scrolls on
    event.preventDefault();
    if (event.shiftKey) view.pan(0, event.deltaY || event.deltaX);
    else view.zoom(Math.exp(event.deltaY * 0.002), placeIn(canvas, event, view)[0]);
    redraw();
  }, {passive: false});
  canvas.addEventListener("pointerdown", (event) => { drag = {at: placeIn(canvas, event, view), moved: false}; });
  canvas.addEventListener("pointerleave", () => tip.hide());
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = placeIn(canvas, event, view);
    if (!drag || event.buttons === 0) {
      const found = view.sliceAt(x, y);
      if (found) tip.show(view.timeline.names[view.timeline.rows[found.r].names[found.i]] + "\n" + view.words(found), event.clientX, event.clientY);
      else tip.hide();
      return;
    }
    tip.hide();
    if (Math.abs(x - drag.at[0]) + Math.abs(y - drag.at[1]) > 2) drag.moved = true;
    view.pan(view.time(drag.at[0]) - view.time(x), drag.at[1] - y);
    drag.at = [x, y];
    redraw();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) view.show(view.sliceAt(...placeIn(canvas, event, view)));
    drag = null;
    redraw();
  });
  canvas.addEventListener("dblclick", () => { view.reset(); redraw(); });
}

function listenToKeys(view, redraw) {
  view.canvas.addEventListener("keydown", (event) => {
    const span = view.to - view.from;
    const middle = view.left + view.width / 2;
    const act = {w: () => view.zoom(0.8, middle), s: () => view.zoom(1.25, middle), a: () => view.pan(-span / 8, 0), d: () => view.pan(span / 8, 0),
                 ArrowLeft: () => view.step(-1, 0), ArrowRight: () => view.step(1, 0), ArrowUp: () => view.step(0, -1),
                 ArrowDown: () => view.step(0, 1)}[event.key];
    if (!act || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    act();
    redraw();
  });
}

/** Time by row and class: the timeline as text. */
function timelineTable(timeline) {
  const rows = [];
  for (const row of timeline.rows) {
    const sums = new Map();
    row.kinds.forEach((kind, i) => {
      const [time, count] = sums.get(kind) || [0, 0];
      sums.set(kind, [time + row.end[i] - row.begin[i], count + 1]);
    });
    for (const [kind, [time, count]] of sums) rows.push([row.name, timeline.kinds[kind], time * 1e3, count]);
  }
  return {columns: ["row", "class", "ms", "slices"], rows};
}

/** Classes that have slices, with their colours. */
function timelineLegend(timeline) {
  const used = new Set(timeline.rows.flatMap((row) => [...new Set(row.kinds)]));
  const kinds = timeline.kinds.map((_, i) => i).filter((i) => used.has(i));
  const colours = timeline.colours || COLOURS;
  return legendNode(kinds.map((i) => timeline.kinds[i]), kinds.map((i) => colours[i % colours.length]));
}

function timelineNode(timeline) {
  decodeRows(timeline);
  const canvas = element("canvas", {tabindex: "0", role: "img", "aria-label": "timeline of GPUs and streams; arrow keys choose slices"});
  const details = element("div", {class: "details", "aria-live": "polite"}, "Click a slice, or use the arrow keys. Ctrl + wheel or w s: zoom; drag or a d: pan; " +
    "shift + wheel: rows; double click: all.");
  const view = new TimelineView(timeline, canvas, details);
  globalThis.timelineView = view;
  const redraw = drawnOnce(view);
  listenToPointer(view, redraw);
  listenToKeys(view, redraw);
  const found = element("span");
  const input = element("input", {type: "search", placeholder: "search", "aria-label": "search slices", oninput: () => {
    const count = view.search(input.value);
    found.textContent = input.value ? count + " slices" : "";
    redraw();
  }});
  const path = element("input", {type: "checkbox", onchange: () => { view.showPath = path.checked; redraw(); }});
  const fit = () => {
    view.fit(canvas.clientWidth || document.getElementById("main").clientWidth - (isNarrow() ? 24 : 36));
    view.draw();
  };
  fit();
  repaints.push(() => view.draw());
  resizes.push(fit);
  return element("div", {}, timelineLegend(timeline), element("div", {class: "tools"}, input,
    element("button", {type: "button", onclick: () => { view.next(); redraw(); }}, "next"), found,
    element("button", {type: "button", onclick: () => { view.reset(); redraw(); }}, "all"),
    timeline.path && timeline.path.begin.length > 0 ? element("label", {}, path, "critical path") : null), canvas, details,
    timeline.note ? element("p", {class: "note"}, timeline.note) : null, asTable(() => timelineTable(timeline)));
}
