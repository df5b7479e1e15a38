"use strict";
// Light and dark: as the reader's system says, or as the button says. Drawings ask for the colours of the page.

/** A colour of the page's style: "ink", "line", ... */
function styleColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/** What has to be drawn again in other colours. */
const repaints = [];

/** What has to be fitted again when the window has another size. */
const resizes = [];

function repaintAll() {
  for (const repaint of repaints) repaint();
}

/** What the button set in an earlier report; nothing where the browser keeps nothing for local files. */
function storedTheme(value) {
  try {
    if (value !== undefined) localStorage.setItem("tessera-theme", value);
    return localStorage.getItem("tessera-theme");
  } catch {
    return null;
  }
}

function isDark() {
  const theme = document.documentElement.getAttribute("data-theme");
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function setTheme(theme) {
  document.documentElement.setAttribute("data-theme", theme);
  repaintAll();
}

/** Paper is white: drawings are made anew in light colours, and in those of the screen afterwards. */
function printInLight() {
  let theme = null;
  addEventListener("beforeprint", () => {
    theme = document.documentElement.getAttribute("data-theme");
    document.documentElement.setAttribute("data-theme", "light");
    repaintAll();
  });
  addEventListener("afterprint", () => {
    if (theme === null) document.documentElement.removeAttribute("data-theme");
    else document.documentElement.setAttribute("data-theme", theme);
    repaintAll();
  });
}

/** A button between light and dark; `report.html#dark` begins dark. */
function themeButton() {
  const wanted = ["#dark", "#light"].includes(location.hash) ? location.hash.slice(1) : storedTheme();
  if (wanted === "dark" || wanted === "light") document.documentElement.setAttribute("data-theme", wanted);
  const words = () => isDark() ? "Light" : "Dark";
  const button = element("button", {type: "button", title: "colours of the page", onclick: () => {
    const theme = isDark() ? "light" : "dark";
    storedTheme(theme);
    setTheme(theme);
    button.textContent = words();
  }}, words());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    button.textContent = words();
    repaintAll();
  });
  return button;
}

/** Black or white, whichever reads better on `colour` ("#rrggbb"). */
function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => (parseInt(colour.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

function isNarrow() {
  return document.documentElement.clientWidth < 640;
}
