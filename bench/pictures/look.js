// What is wrong with the page as it is laid out now, one line each; arguments: width and height of the window, least contrast.
// The body of a function: WebDriver calls it.
const [width, height, least] = arguments;
const wrong = [];

const rgba = (text) => {
  const n = text.match(/[\d.]+/g).map(Number);
  const unit = text.startsWith("color(") ? 255 : 1;
  return [n[0] * unit, n[1] * unit, n[2] * unit, n.length > 3 ? n[3] : 1];
};
const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);

/** All that lies behind an element, as one colour. */
function behind(element) {
  const layers = [];
  for (let e = element; e; e = e.parentElement) layers.unshift(rgba(getComputedStyle(e).backgroundColor));
  return layers.reduce((under, top) => over(top, under), [255, 255, 255, 1]);
}

const seen = (e) => e.checkVisibility() && e.getClientRects().length > 0;

const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const e = texts.currentNode.parentElement;
  const text = texts.currentNode.data.trim();
  if (!text || !seen(e) || /^(script|style|title)$/i.test(e.tagName)) continue;
  const style = getComputedStyle(e);
  const back = behind(e);
  const front = over(rgba(e instanceof SVGElement ? style.fill : style.color), back);
  const [dark, light] = [luminance(front), luminance(back)].sort((a, b) => a - b);
  const contrast = (light + 0.05) / (dark + 0.05);
  if (contrast < least) wrong.push(`contrast ${contrast.toFixed(2)}: ${text}`);
}

const wide = Math.max(document.documentElement.scrollWidth, innerWidth);
if (wide > width) wrong.push(`the page is ${wide} px wide`);
for (const e of document.querySelectorAll("section")) {
  if (seen(e) && e.scrollWidth > e.clientWidth) wrong.push(`${e.id} scrolls sideways by ${e.scrollWidth - e.clientWidth} px`);
}
for (const e of document.querySelectorAll("td, dd")) {
  if (seen(e) && e.scrollWidth > e.clientWidth) wrong.push(`cut off: ${e.textContent}`);
}
const verdict = document.querySelector("#glance .verdict");
if (!verdict || verdict.getBoundingClientRect().bottom > height) wrong.push("the verdict is below the fold");
return wrong;
