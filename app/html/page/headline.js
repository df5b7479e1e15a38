"use strict";
// What a reader wants first: how long a step takes and how sure that is, how fast, whether it fits, where the time goes.

/** The interval as a bar from 0, with the value as a mark. */
function intervalNode(time, unit) {
  const whole = time.high_s * 1.12;
  const place = (seconds) => 100 * seconds / whole + "%";
  const node = element("div", {class: "interval", role: "img", "aria-label": "80 % interval"},
    styled(element("i"), {left: place(time.low_s), width: place(time.high_s - time.low_s)}), styled(element("b"), {left: place(time.seconds)}));
  const wrong = (time.high_s - time.low_s) / 2;
  const text = (seconds) => known(seconds / unit.size, wrong / unit.size);
  node.append(styled(element("span", {}, "80 %: " + text(time.low_s) + " to " + text(time.high_s) + " " + unit.name), {left: time.low_s > 0.5 * whole ? "" : place(time.low_s),
    right: time.low_s > 0.5 * whole ? 0 : ""}));
  return node;
}

function cardNode(name, definition, ...children) {
  return element("div", {class: "card"}, element("div", {class: "name", title: definition || null}, name), ...children);
}

function figureNode(value, unit) {
  return element("div", {class: "figure"}, value, unit ? element("small", {}, unit) : null);
}

/** Half of the interval's width as a share of the step time; 0 where there is none. */
function shareWrong(time) {
  return time.high_s ? (time.high_s - time.low_s) / 2 / time.seconds : 0;
}

function timeCard(time) {
  const unit = timeUnit(time.seconds);
  const wrong = shareWrong(time) * time.seconds / unit.size;
  const card = cardNode("step time", time.definition, figureNode(known(time.seconds / unit.size, wrong), unit.name),
    time.high_s ? intervalNode(time, unit) : element("p", {class: "note"}, "no interval: this predictor knows none"));
  card.classList.add("hero");
  return card;
}

function memoryCard(memory) {
  const whole = Math.max(memory.needed, memory.capacity) || 1;
  const parts = memory.parts.map((part, i) => ({share: part.bytes / whole, colour: COLOURS[i % COLOURS.length], label: part.name,
    title: part.name + " " + bytesText(part.bytes, 3)}));
  const limit = styled(element("i"), {position: "absolute", top: 0, bottom: 0, width: "3px", left: "calc(" + 100 * memory.capacity / whole + "% - 3px)",
    background: memory.fits ? "transparent" : styleColour("bad")});
  const bar = barNode(parts, "tall memory");
  bar.append(limit);
  const left = memory.capacity - memory.needed;
  const verdict = memory.fits ? "fits, " + bytesText(left, 3) + " free" : "does not fit, " + bytesText(-left, 3) + " too much";
  return element("div", {class: "card"}, element("div", {class: "words"},
    element("span", {class: "name", title: memory.definition}, "memory of the fullest GPU"),
    element("span", {class: "verdict " + (memory.fits ? "good" : "bad")}, verdict),
    element("span", {class: "faint"}, bytesText(memory.needed, 3) + " of " + bytesText(memory.capacity, 3))), bar,
    legendNode(memory.parts.map((part) => part.name + " " + bytesText(part.bytes, 3)), COLOURS));
}

/** Classes with their colours, those first that take most; `shares` by class. */
function shareList(ranks, shares, seconds) {
  const order = shares.map((_, i) => i).filter((i) => shares[i] > 0).sort((a, b) => shares[b] - shares[a]);
  return element("div", {class: "pairs"}, ...order.map((i) => element("div", {}, swatch(ranks.colours[i]), ranks.classes[i],
    element("span", {class: "value"}, timeText(shares[i] * seconds, 3)),
    element("span", {class: "share"}, (100 * shares[i]).toFixed(1) + " %"))));
}

function sharesBar(ranks, shares, kind) {
  const colours = ranks.colours || COLOURS;
  return barNode(shares.map((share, i) => ({share, colour: colours[i % colours.length], label: kind ? ranks.classes[i] : null,
    title: ranks.classes[i] + " " + significant(100 * share, 3) + " %"})), kind);
}

function timeGoesCard(headline, ranks) {
  return element("div", {class: "card"}, element("div", {class: "name", title: headline.breakdown_definition}, "where the time of a GPU goes"),
    sharesBar(ranks, headline.shares, "tall"), shareList(ranks, headline.shares, headline.time.seconds));
}

function headlineNode(headline, ranks) {
  const wrong = shareWrong(headline.time);
  const cards = headline.figures.map((figure) => cardNode(figure.name, figure.definition,
    figureNode(figure.share ? figure.value.toFixed(1) : known(figure.value, wrong * figure.value), figure.unit),
    figure.detail ? element("div", {class: "faint"}, (figure.detail_value === undefined ? "" : known(figure.detail_value, wrong * figure.detail_value) + " ") +
      figure.detail) : null));
  const cautions = headline.cautions.length > 0 ? element("ul", {class: "chips", "aria-label": "what to know"},
    ...headline.cautions.map((text) => element("li", {}, text))) : null;
  return element("div", {id: "answer"}, element("div", {class: "grid"}, timeCard(headline.time), ...cards), cautions,
    headline.memory ? memoryCard(headline.memory) : null, ranks ? timeGoesCard(headline, ranks) : null);
}

const SECONDS_OF = {s: 1, ms: 1e-3, us: 1e-6, ns: 1e-9};

/** A figure of another page: its `kind` says how it is written. */
function cardText(card) {
  if (card.kind in SECONDS_OF && typeof card.value === "number") return cardText({...card, kind: "seconds", value: card.value * SECONDS_OF[card.kind]});
  if (card.kind === "B") return figureNode(...bytesText(card.value, 3).split(" "));
  if (card.kind === "seconds") return figureNode(known(card.value / timeUnit(card.value).size), timeUnit(card.value).name);
  if (card.kind === "bytes") return figureNode(significant(card.value / 2 ** 30, 3), "GiB");
  if (card.kind === "change") return figureNode((card.value > 0 ? "+" : "") + card.value.toFixed(1), "%");
  if (card.kind === "share") return figureNode(card.value.toFixed(1), "%");
  if (!card.kind && Number.isInteger(card.value)) return figureNode(String(card.value), "");  // a count
  return figureNode(typeof card.value === "number" ? known(card.value) : significant(card.value), card.kind);
}

/** Cards of a page: `name`, `value`, `kind`, `detail`. */
function cardsNode(cards) {
  return element("div", {class: "grid", id: "answer"}, ...cards.map((card) => cardNode(card.name, card.definition, cardText(card),
    card.detail ? element("div", {class: "faint"}, card.detail) : null)));
}

const MOST_CARDS = 6;

/** Cards of the first figures of a list, whose names end in their units: "peak with the plan [GiB]". */
function summaryCards(summary) {
  return summary.slice(0, MOST_CARDS).map(({name, value, definition}) => {
    const [, words, unit] = name.match(/^(.*?)(?: \[(.*)\])?$/);
    return {name: words, value, kind: unit || "", definition};
  });
}

/** What would help: how much of a resource's speed reaches the step. */
function effectsNode(effects) {
  const most = Math.max(1, ...effects.map((effect) => effect.elasticity));
  return element("div", {}, element("div", {class: "effects"}, ...effects.flatMap((effect) => [element("span", {}, effect.name),
    barNode([{share: Math.max(effect.elasticity, 0) / most, colour: COLOURS[0], title: effect.name + " " + significant(effect.elasticity, 2)}]),
    element("span", {}, significant(100 * effect.elasticity, 2) + " %")])),
    element("p", {class: "note"}, "how much of a part's speed reaches the step: 100 % where the step is as much faster as the part, 0 where nothing waits for it"));
}
