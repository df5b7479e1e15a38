"use strict";
// From one step time to another, class by class.

/** `waterfall`: {from: {name, seconds}, to: {name, seconds}, steps: [{name, seconds, colour}]}; longest first. */
function waterfallNode(waterfall) {
  const {from, to, steps} = waterfall;
  let at = from.seconds;
  const rows = [{name: from.name, begin: 0, end: from.seconds, colour: COLOURS[12], text: timeText(from.seconds)}];
  for (const step of steps) {
    const end = at + step.seconds;
    rows.push({name: step.name, begin: Math.min(at, end), end: Math.max(at, end), colour: step.colour,
               text: (step.seconds > 0 ? "+" : "\u2212") + timeText(Math.abs(step.seconds), 3)});
    at = end;
  }
  rows.push({name: to.name, begin: 0, end: to.seconds, colour: COLOURS[12], text: timeText(to.seconds)});
  const whole = Math.max(...rows.map((row) => row.end)) || 1;
  return element("div", {}, element("div", {class: "effects"}, ...rows.flatMap((row) => [element("span", {}, row.name), waterfallBar(row, whole),
    element("span", {class: "number"}, row.text)])),
    asTable(() => ({columns: ["class", "ms"], rows: [[from.name, from.seconds * 1e3], ...steps.map((step) => [step.name, step.seconds * 1e3]),
      [to.name, to.seconds * 1e3]]})));
}

function waterfallBar(row, whole) {
  const gap = styled(element("span"), {width: 100 * row.begin / whole + "%"});
  const bar = styled(element("span", {title: row.name + " " + row.text}), {width: Math.max(100 * (row.end - row.begin) / whole, 0.2) + "%",
    background: row.colour});
  return element("div", {class: "bar", role: "img", "aria-label": row.name + " " + row.text}, gap, bar);
}
