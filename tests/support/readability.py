"""Whether a page in a browser can be read."""

from __future__ import annotations

from typing import Any

# Contrast (WCAG 2.2) of every visible text with what is painted behind it.
CONTRASTS = """
const context = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
const channels = (colour) => {
  context.clearRect(0, 0, 1, 1);
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data;
  return [red, green, blue, alpha / 255];
};
const over = (below, colour, opacity) => {
  const [red, green, blue, alpha] = channels(colour);
  return [red, green, blue].map(
    (value, i) => below[i] + (value - below[i]) * alpha * opacity);
};
const behind = (node) => {
  if (!node) return [255, 255, 255];
  const {backgroundColor, opacity} = getComputedStyle(node);
  return over(behind(node.parentElement), backgroundColor, Number(opacity));
};
const opacityOf = (node) =>
  node ? Number(getComputedStyle(node).opacity) * opacityOf(node.parentElement) : 1;
const luminance = (colour) => {
  const [red, green, blue] = colour.map((value) => value / 255).map(
    (share) => share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const hasText = (node) => node.tagName === "SELECT" || [...node.childNodes].some(
  (child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
const isSeen = (node) => {
  const {width, height} = node.getBoundingClientRect();
  const seen = {opacityProperty: true, visibilityProperty: true};
  const drawn = channels(getComputedStyle(node).color)[3] > 0;
  return width > 1 && height > 1 && drawn && node.checkVisibility(seen)
    && node.tagName !== "OPTION";
};
return [...document.body.querySelectorAll("*")]
  .filter((node) => hasText(node) && isSeen(node))
  .map((node) => {
    const {color, fill} = getComputedStyle(node);
    const below = behind(node);
    const text = over(below, node.tagName === "text" ? fill : color, opacityOf(node));
    const [low, high] = [luminance(below), luminance(text)].sort((a, b) => a - b);
    return [(high + 0.05) / (low + 0.05), node.textContent.trim()];
  });
"""
WIDTHS = """
const {scrollWidth, clientWidth} = document.documentElement;
return [scrollWidth, clientWidth];
"""


def unreadable(browser: Any) -> list[list]:
    found = browser.execute_script(CONTRASTS)
    assert len(found) > 20
    return [[ratio, text] for ratio, text in found if ratio < 4.5]


def set_theme(browser: Any, theme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
