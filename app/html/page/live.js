"use strict";
// The page of `tessera serve`: a form, and the step that it describes, simulated again while a slider moves.

/** Takes everything away that drawings left behind: charts, what is painted again, boxes beside the pointer. */
function forgetDrawings() {
  for (const {chart} of charts) chart.dispose();
  charts.length = 0;
  repaints.length = 0;
  resizes.length = 0;
  for (const tip of document.querySelectorAll(".tip")) tip.remove();
}

/** Values whose names in a scenario are not what people call them. */
const VALUE_WORDS = {one_f_one_b: "1F1B", gpipe: "GPipe", interleaved_1f1b: "interleaved 1F1B", zb_h1: "ZB-H1", zb_h2: "ZB-H2", dualpipe: "DualPipe"};

class LiveView {
  constructor(live) {
    this.live = live;
    this.token = new URLSearchParams(location.search).get("token");
    this.values = new Map(live.fields.map((field) => [field.path, field.value]));
    this.controls = new Map();
    this.results = element("div", {"aria-live": "polite"});
    this.problems = element("div");
    this.status = element("span", {class: "faint", role: "status"});
    this.fill = element("input", {type: "checkbox", checked: "", onchange: () => this.ask()});
    this.report = element("a", {target: "_blank", rel: "noopener"}, "whole report");
    this.scenario = element("a", {download: "scenario.yaml"}, "scenario file");
    this.waiting = null;  // the request that has no answer yet
  }

  /** A slider over the values of a number, or a select. */
  control(field) {
    const values = field.values.includes(field.value) || field.value === null ? field.values : [...field.values, field.value]
      .sort((a, b) => typeof a === "number" ? a - b : 0);
    const output = element("output", {}, significant(field.value));
    const set = (value) => {
      this.values.set(field.path, value);
      output.textContent = significant(value);
    };
    const choose = (value) => {
      set(value);
      this.ask();
    };
    const node = field.kind === "number"
      ? element("input", {type: "range", min: 0, max: values.length - 1, "aria-label": field.label, oninput: () => choose(values[Number(node.value)])})
      : element("select", {"aria-label": field.label, onchange: () => choose(values[Number(node.value)])},
        ...values.map((value, i) => element("option", {value: i}, VALUE_WORDS[value] || value)));
    node.value = Math.max(values.indexOf(field.value), 0);
    this.controls.set(field.path, {values, node, set});
    return element("label", {class: "field", title: field.help}, element("span", {}, field.label), node, field.kind === "number" ? output : null);
  }

  /** So many replicas that every GPU of the cluster has work. */
  fillCluster() {
    const gpus = this.live.gpus[this.values.get("cluster")];
    const size = ["tensor", "pipeline", "context"].reduce((product, name) => product * (this.values.get("parallelism." + name) || 1), 1);
    const data = this.controls.get("parallelism.data");
    data.node.disabled = this.fill.checked;
    if (!this.fill.checked || !gpus) return;
    data.set(Math.max(1, Math.floor(gpus / size)));
    const at = data.values.indexOf(this.values.get("parallelism.data"));
    if (at >= 0) data.node.value = at;
  }

  /** What differs from the scenario that one began with, as a query with the token. */
  query() {
    const query = new URLSearchParams({token: this.token});
    for (const field of this.live.fields) {
      const value = this.values.get(field.path);
      if (value !== field.value && value !== null) query.append("set", field.path + "=" + value);
    }
    return query.toString();
  }

  /** Asks once no slider has moved for a moment; the answer to an older question is not waited for. */
  ask() {
    this.fillCluster();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.askNow(), 60);
  }

  async askNow() {
    if (this.waiting) this.waiting.abort();
    const waiting = new AbortController();
    this.waiting = waiting;
    this.report.setAttribute("href", "/report?" + this.query());
    this.scenario.setAttribute("href", "/scenario.yaml?" + this.query());
    this.status.textContent = "simulating";
    const begin = performance.now();
    try {
      const answer = await fetch("/step?" + this.query(), {signal: waiting.signal, headers: {"X-Tessera-Token": this.token}});
      const found = answer.ok ? await answer.json() : {problems: [{where: "", what: await answer.text(), hint: ""}]};
      this.status.textContent = "simulated in " + timeText((performance.now() - begin) / 1e3, 2);
      this.show(found);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.status.textContent = "";
      this.show({problems: [{where: "", what: "the simulation ended without an answer", hint: "choose a smaller job, or look at the terminal of tessera serve"}]});
    }
  }

  show(found) {
    const wrong = found.problems || [];
    this.problems.replaceChildren(...wrong.map((problem) => element("p", {class: "problem", role: "alert"},
      problem.where ? element("strong", {}, problem.where + ": ") : null, problem.what, problem.hint ? element("span", {class: "faint"}, " " + problem.hint) : null)));
    this.results.classList.toggle("stale", wrong.length > 0);
    if (wrong.length > 0) return;
    const step = found.step;
    forgetDrawings();
    const parts = [element("p", {class: "faint"}, step.subtitle), headlineNode(step.headline, step.ranks),
      plainSection("Timeline", timelineNode(step.timeline))];
    if (canDrawCharts()) parts.push(plainSection("Memory", memoryNode(step.memory)));
    this.results.replaceChildren(...parts);
    fitCharts();
    for (const resize of resizes) resize();
    document.documentElement.setAttribute("data-live", step.headline.time.seconds);
  }
}

function plainSection(title, node) {
  return element("section", {}, element("h2", {}, title), node);
}

function liveNode(live) {
  const view = new LiveView(live);
  globalThis.liveView = view;
  const fields = live.fields.map((field) => view.control(field));
  const form = element("form", {class: "card fields", onsubmit: (event) => event.preventDefault()}, ...fields,
    element("label", {class: "field"}, element("span", {}, "data fills the cluster"), view.fill),
    element("div", {class: "tools"}, view.report, view.scenario, view.status));
  view.fill.checked = view.values.get("cluster") in live.gpus && matchesCluster(view);
  view.ask();
  return element("div", {class: "live"}, form, element("div", {}, view.problems, view.results));
}

/** Whether the scenario uses every GPU as it is. */
function matchesCluster(view) {
  const size = ["tensor", "pipeline", "context", "data"].reduce((product, name) => product * (view.values.get("parallelism." + name) || 1), 1);
  return view.live.gpus[view.values.get("cluster")] === size;
}
