// What is wrong with the page as it is shown now, as texts: text too faint to read (WCAG 2.2, 1.4.3: a ratio of 4.5), text that is
// cut, a page wider than its window, what answers a click and no key, what has no name for a screen reader.
(() => {
  const FAINTEST = 4.5;
  const shown = (node) => node.getClientRects().length > 0 && getComputedStyle(node).visibility !== "hidden";
  const called = (node) => node.tagName.toLowerCase() + (node.getAttribute("class") ? "." + node.getAttribute("class") : "");
  const colour = (text) => {
    const [red, green, blue, opaque = 1] = (text.match(/[\d.]+/g) || []).map(Number);
    return blue === undefined ? null : {parts: [red, green, blue], opaque};
  };
  const luminance = ({parts}) => parts.map((part) => part / 255).map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const found = colour(getComputedStyle(at).backgroundColor);
      if (found && found.opaque > 0.5) return found;
    }
    return {parts: [255, 255, 255]};
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const texts = () => {
    const found = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const {parentElement} = walk.currentNode;
      if (walk.currentNode.nodeValue.trim() && !parentElement.closest("script, style") && shown(parentElement)) found.push(walk.currentNode);
    }
    return found;
  };
  const faint = (text) => {
    const style = getComputedStyle(text.parentElement);
    const ink = colour(text.parentElement.closest("svg") ? style.fill : style.color);
    const ratio = ink ? contrast(ink, behind(text.parentElement)) : FAINTEST;
    return ratio < FAINTEST && `contrast ${ratio.toFixed(2)} of "${text.nodeValue.trim().slice(0, 40)}" in ${called(text.parentElement)}`;
  };
  const cut = (text) => {
    const node = text.parentElement;
    const style = getComputedStyle(node);
    return style.overflowX === "hidden" && style.textOverflow !== "ellipsis" && node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0 &&
      `"${text.nodeValue.trim().slice(0, 40)}" is cut in ${called(node)}`;
  };
  const dead = (node) => getComputedStyle(node).cursor === "pointer" && shown(node) && !node.closest("button, a, summary, label, input, select, [tabindex]") &&
    `no key reaches ${called(node)}`;
  const nameless = (node) => shown(node) && !(node.getAttribute("aria-label") || node.textContent.trim() || node.title || node.labels?.[0]?.textContent) &&
    `${called(node)} has no name`;
  const wide = document.documentElement.scrollWidth > innerWidth && `${document.documentElement.scrollWidth} pixels wide in a window of ${innerWidth}`;
  const found = [wide, ...texts().flatMap((text) => [faint(text), cut(text)]), ...[...document.querySelectorAll("body *")].map(dead),
    ...[...document.querySelectorAll("button, input, select, a, [role=img], [tabindex]")].map(nameless)];
  return [...new Set(found.filter(Boolean))];
})()
