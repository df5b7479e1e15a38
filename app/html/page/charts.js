"use strict";
// Charts by Apache ECharts, where the page holds it. They draw on canvases, tooltips too: no text becomes markup, no style is inline.

/** Charts of the page in order: {name, box, chart}. */
const charts = [];

function canDrawCharts() {
  return globalThis.echarts !== undefined;
}

const CHART_BASE = {animation: false, color: COLOURS, textStyle: {fontFamily: "system-ui, sans-serif"}};
const TOOLTIP = {renderMode: "richText", confine: true, transitionDuration: 0, textStyle: {fontSize: 12}};
const LEGEND = {type: "scroll", top: 4, itemWidth: 12, itemHeight: 9};

/** What ECharts calls a theme: the colours of the page around it. */
function chartTheme() {
  const [ink, faint, line, card] = ["ink", "faint", "line", "card"].map(styleColour);
  const axis = {nameTextStyle: {color: faint}, axisLabel: {color: faint}, axisLine: {lineStyle: {color: line}}, axisTick: {lineStyle: {color: line}},
                splitLine: {lineStyle: {color: line}}};
  const words = {textStyle: {color: ink}};
  return {backgroundColor: "transparent", textStyle: {color: ink}, categoryAxis: {...axis, splitLine: {show: false}}, valueAxis: axis, logAxis: axis,
          parallelAxis: axis, legend: {...words, pageTextStyle: {color: ink}, pageIconColor: faint, pageIconInactiveColor: line}, visualMap: words,
          tooltip: {backgroundColor: card, borderColor: line, textStyle: {color: ink}}, dataZoom: {borderColor: line, textStyle: {color: faint}}};
}

/** A chart of `height` pixels, as wide as its section, with what ECharts calls an option; without one nothing is drawn yet. */
function addChart(name, height, option) {
  const box = element("div", {class: "chart", role: "img", "aria-label": name});
  box.style.height = height + "px";
  const width = document.getElementById("main").clientWidth - (isNarrow() ? 24 : 36);
  const chart = globalThis.echarts.init(box, chartTheme(), {renderer: "canvas", width, height});
  if (option) chart.setOption({...CHART_BASE, ...option});
  charts.push({name, box, chart});
  repaints.push(() => chart.setTheme(chartTheme()));
  return {box, chart};
}

function fitCharts() {
  for (const {box, chart} of charts) {
    if (box.clientWidth > 0 && box.clientWidth !== chart.getWidth()) chart.resize({width: box.clientWidth});
  }
}

/** Draws what is due now: a printer waits for no frame. */
function flushCharts() {
  for (const {chart} of charts) chart.getZr().flush();
}

/** Ctrl + wheel and drag in the picture, and a slider under it; `axes` as in {xAxisIndex: [0]}. */
function zoomOf(axes) {
  const inside = {type: "inside", filterMode: "none", zoomOnMouseWheel: "ctrl", ...axes};
  return [inside, {type: "slider", filterMode: "none", height: 16, bottom: 6, showDetail: false, brushSelect: false, ...axes}];
}

/** An axis of numbers; `text` makes the label of one. */
function numberAxis(name, text, more) {
  return {type: "value", name, nameLocation: "middle", nameGap: 26, axisLabel: {formatter: text ? (value) => text(value) : null, hideOverlap: true}, scale: true, ...more};
}

/** What a page without the library lacks, said where readers begin. */
function missingNode(titles) {
  return element("p", {class: "note missing"}, "Without charts: " + titles.join(", ") + ". This Tessera was built without its chart library: " +
    "install npm (Debian: apt-get install npm) and build again with tools/setup.");
}
