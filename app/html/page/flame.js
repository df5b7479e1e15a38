"use strict";
// Where the kernels' time of a step lies: phases, the parts of layers below them, their kernels.

const FLAME_LEVELS = ["phase", "part of a layer", "kernel"];
const FLAME_THIN = 0.002; // of the step: narrower ones are drawn together

/** Children that are wide enough, and what is left of them as one. */
function flameParts(parts, step) {
  const wide = parts.filter((part) => part.seconds >= FLAME_THIN * step);
  const rest = parts.length - wide.length;
  if (rest === 0) return wide;
  const seconds = parts.reduce((sum, part) => sum + part.seconds, 0) - wide.reduce((sum, part) => sum + part.seconds, 0);
  return [...wide, {name: rest + " shorter ones", seconds, faint: true}];
}

function flameTitle(path, part, step) {
  return [...path, part.name].join(" \u203a ") + "\n" + timeText(part.seconds, 3) + ", " + significant(100 * part.seconds / step, 3) + " % of the step";
}

/** A part above its children, as wide as its share of the one above. */
function flameNode(part, whole, colour, path, step) {
  const below = flameParts(part.segments || part.kernels || [], step);
  const inner = [...path, part.name];
  const label = styled(element("div", {class: "label", title: flameTitle(path, part, step)}, part.name),
    {background: part.faint ? "var(--track)" : colour, color: part.faint ? "var(--faint)" : inkOn(colour), opacity: 1 - 0.14 * path.length});
  return styled(element("div", {class: "part"}, label,
    below.length > 0 ? element("div", {class: "level"}, ...below.map((child) => flameNode(child, part.seconds, colour, inner, step))) : null),
  {width: 100 * part.seconds / whole + "%"});
}

function flameRows(flame) {
  return flame.phases.flatMap((phase) => phase.segments.flatMap((segment) => segment.kernels.map((kernel) =>
    [phase.name, segment.name, kernel.name, 1e3 * kernel.seconds, 100 * kernel.seconds / flame.step_s])));
}

/** `flame`: {step_s, phases: [{name, colour, seconds, segments: [{name, seconds, kernels: [{name, seconds}]}]}]}. */
function flameGraph(flame) {
  const whole = flame.phases.reduce((sum, phase) => sum + phase.seconds, 0);
  return element("div", {}, element("div", {class: "flame", role: "img", "aria-label": "kernels by phase and part of a layer; the table below says the same"},
    ...flame.phases.filter((phase) => phase.seconds > 0).map((phase) => flameNode(phase, whole, phase.colour, [], flame.step_s))),
  element("p", {class: "note"}, "mean over GPUs; the width is time in kernels, " + timeText(whole, 3) + " of a step of " + timeText(flame.step_s, 3) + "; from top to bottom: "
    + FLAME_LEVELS.join(", ")),
  asTable(() => ({columns: [...FLAME_LEVELS, "ms", "% of the step"], rows: flameRows(flame)})));
}
