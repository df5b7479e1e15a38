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
  // Where little differs, all of it is at the right end: the bars begin later.
  const low = Math.min(from.seconds, to.seconds, ...rows.slice(1).map((row) => row.begin));
  const high = Math.max(from.seconds, to.seconds, ...rows.map((row) => row.end));
  const origin = low > 0.6 * high ? low - 0.25 * (high - low) : 0;
  rows.push({name: to.name, begin: 0, end: to.seconds, colour: COLOURS[12], text: timeText(to.seconds)});
  return element("div", {}, element("div", {class: "effects"}, ...rows.flatMap((row) => [element("span", {}, row.name), waterfallBar(row, origin, high || 1),
    element("span", {class: "number"}, row.text)])),
    origin > 0 ? element("p", {class: "note"}, "bars begin at " + timeText(origin, 3)) : null,
    asTable(() => ({columns: ["class", "ms"], rows: [[from.name, from.seconds * 1e3], ...steps.map((step) => [step.name, step.seconds * 1e3]),
      [to.name, to.seconds * 1e3]]})));
}

function waterfallBar(row, origin, high) {
  const percent = (seconds) => 100 * Math.max(seconds - origin, 0) / (high - origin);
  const gap = styled(element("span"), {width: percent(row.begin) + "%"});
  const bar = styled(element("span", {title: row.name + " " + row.text}), {width: Math.max(percent(row.end) - percent(row.begin), 0.2) + "%",
    background: row.colour});
  return element("div", {class: "bar", role: "img", "aria-label": row.name + " " + row.text}, gap, bar);
}
