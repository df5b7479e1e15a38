"use strict";
// What tests ask of a page: report.html#measure.

/** Texts that a chart shows. */
function textsOf(chart) {
  return chart.getZr().storage.getDisplayList(true).map((shape) => shape.style.text).filter((text) => text);
}

/** A click of a mouse at a place of a chart, in its pixels. */
function press({box, chart}, [x, y]) {
  chart.getZr().flush();  // what lies where is worked out with the drawing
  const canvas = box.querySelector("canvas");
  const corner = canvas.getBoundingClientRect();
  for (const type of ["pointermove", "mousemove", "pointerdown", "mousedown", "pointerup", "mouseup", "click"]) {
    const make = type.startsWith("pointer") ? PointerEvent : MouseEvent;
    canvas.dispatchEvent(new make(type, {bubbles: true, clientX: corner.left + x, clientY: corner.top + y, pointerId: 1, pointerType: "mouse"}));
  }
}

/** Where a chart says "peak", on its first axis; null where it does not. */
function peakOf(chart) {
  const label = chart.getZr().storage.getDisplayList(true).find((shape) => shape.style.text === "peak");
  if (!label) return null;
  const box = label.getBoundingRect().clone();
  if (label.transform) box.applyTransform(label.transform);
  return chart.convertFromPixel({xAxisIndex: 0}, box.x + box.width / 2);
}

/** What a chart holds, what its zoom changes, and what a pointer over the first point of its first series says. */
function probe({name, chart}) {
  const option = chart.getOption();
  const shapes = chart.getZr().storage.getDisplayList(true).length;
  const series = option.series.map((one) => ({type: one.type, name: one.name, points: one.data.length}));
  const found = {name, shapes, series, peak: peakOf(chart)};
  if (option.xAxis && option.dataZoom && option.dataZoom.length > 0) {
    const middle = () => chart.convertFromPixel({xAxisIndex: 0}, 300);
    const before = middle();
    chart.dispatchAction({type: "dataZoom", dataZoomIndex: 0, start: 60, end: 90});
    found.moved = middle() !== before;
    chart.dispatchAction({type: "dataZoom", dataZoomIndex: 0, start: 0, end: 100});
  }
  const before = new Set(textsOf(chart));
  chart.dispatchAction({type: "showTip", seriesIndex: 0, dataIndex: 0});
  found.tip = textsOf(chart).filter((text) => !before.has(text));
  chart.dispatchAction({type: "hideTip"});
  return found;
}

/** Clicks the last point in the scatter, then chooses the lower half of the first axis of numbers. */
function measurePoints(root, view) {
  const last = view.points.rows.length - 1;
  const row = view.points.rows[last];
  press(view.scatter, view.scatter.chart.convertToPixel({gridIndex: 0}, [row[view.right.value], row[view.up.value]]));
  root.setAttribute("data-chosen", view.chosen);
  if (globalThis.gridView) {
    const series = globalThis.gridView.option().series;
    root.setAttribute("data-cells", series.map((one) => one.data.length).join(" "));
  }
  const axis = Number(view.right.value);
  const values = view.points.rows.map((one) => one[axis]);
  const middle = (Math.min(...values) + Math.max(...values)) / 2;
  view.parallel.chart.dispatchAction({type: "axisAreaSelect", parallelAxisIndex: axis, intervals: [[Math.min(...values), middle]]});
  root.setAttribute("data-within", view.count.textContent);
  root.setAttribute("data-expected-within", values.filter((value) => value <= middle).length);
}

/** Clicks the busiest part of the busiest link, after reading its colour. */
function measureLinks(root, {links, heat, words}) {
  const use = links.rows[0].use;
  const at = heat.chart.convertToPixel({gridIndex: 0}, [use.indexOf(Math.max(...use)), 0]);
  const picture = heat.chart.renderToCanvas({pixelRatio: 1});
  root.setAttribute("data-heat", picture.getContext("2d").getImageData(Math.round(at[0]), Math.round(at[1]), 1, 1).data.join(" "));
  press(heat, at);
  root.setAttribute("data-link", words.textContent);
}

/** Writes into the page how long it took to appear and to zoom; for tests (`report.html#measure`). */
function measure(begin) {
  const root = document.documentElement;
  root.setAttribute("data-start-ms", performance.now() - begin);
  if (globalThis.pointsView) measurePoints(root, globalThis.pointsView);
  if (globalThis.linksView && globalThis.linksView.heat) measureLinks(root, globalThis.linksView);
  if (charts.length > 0) root.setAttribute("data-charts", JSON.stringify(charts.map(probe)));
  const view = globalThis.timelineView;
  if (!view) return;
  let slowest = 0;
  for (let step = 0; step < 40; ++step) {
    view.zoom(step < 20 ? 0.7 : 1 / 0.7, 700);
    let frame = Infinity;
    for (let again = 0; again < 3; ++again) {  // the best of three: others may want the processor
      const before = performance.now();
      view.draw();
      view.canvas.getContext("2d").getImageData(0, 0, 1, 1);  // waits for the drawing itself
      frame = Math.min(frame, performance.now() - before);
    }
    slowest = Math.max(slowest, frame);
  }
  root.setAttribute("data-frame-ms", slowest);
  view.reset();
  view.show(view.sliceAt(view.left + 5, view.axis + 5));
  const first = view.chosen.i;
  view.step(1, 0);
  root.setAttribute("data-stepped", view.chosen.i - first);
  view.step(-1, 0);
  root.setAttribute("data-found", view.search("forward"));
}
