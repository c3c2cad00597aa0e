// Draws what the page describes in data-chart, in the page's colours. Each chart says the same as the table beside it.

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const percent = (u, values) => values.map((v) => (v == null ? "" : `${Math.round(v * 100)} %`));
const drawn = new Map(); // a chart's element: its plot, and how to draw it anew
let along = "judgements";

function axes(yFormat, xFormat) {
  const line = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
  return [{ ...line, ...(xFormat && { values: xFormat }) }, { ...line, size: 52, ...(yFormat && { values: yFormat }) }];
}

function banded(data, label) {
  const faint = { stroke: "transparent", points: { show: false } };
  const ink = colour("--link");
  return {
    series: [{}, { label, stroke: ink, width: 2, points: { show: true, size: 6, fill: ink } }, faint, faint],
    bands: [{ series: [3, 2], fill: `${ink}33` }],
    data,
  };
}

const kinds = {
  quality: (chart) => ({
    ...banded([chart.x[along], ...chart.y], chart.name),
    axes: axes(percent),
    scales: { x: { time: along === "time" }, y: { range: [0, 1] } },
  }),
  tradeoff: (chart) => ({
    ...banded([chart.x, ...chart.y], "Error"),
    axes: axes(percent, percent),
    scales: { x: { time: false }, y: { range: (u, low, high) => [0, Math.max(0.05, high * 1.1)] } },
    hooks: { draw: [(u) => chart.now && dot(u, ...chart.now)] },
  }),
  histogram: (chart) => ({
    data: [chart.x, chart.y],
    series: [{}, { stroke: colour("--link"), fill: `${colour("--link")}55`, paths: uPlot.paths.bars({ size: [0.9] }), points: { show: false } }],
    axes: axes((u, values) => values.map((v) => (Number.isInteger(v) ? v : ""))),
    scales: { x: { time: false }, y: { distr: 4, range: (u, low, high) => [0, high * 1.2] } }, // a few beside many show, too
    hooks: { draw: [(u) => chart.cuts.forEach((cut, i) => rule(u, cut, colour(i ? "--good" : "--bad")))] },
  }),
};

function rule(u, x, stroke) {
  const at = u.valToPos(x, "x", true);
  u.ctx.save();
  u.ctx.strokeStyle = stroke;
  u.ctx.lineWidth = 2 * devicePixelRatio;
  u.ctx.beginPath();
  u.ctx.moveTo(at, u.bbox.top);
  u.ctx.lineTo(at, u.bbox.top + u.bbox.height);
  u.ctx.stroke();
  u.ctx.restore();
}

function dot(u, x, y) {
  u.ctx.save();
  u.ctx.fillStyle = colour("--bad");
  u.ctx.beginPath();
  u.ctx.arc(u.valToPos(x, "x", true), u.valToPos(y, "y", true), 5 * devicePixelRatio, 0, 2 * Math.PI);
  u.ctx.fill();
  u.ctx.restore();
}

function draw(element) {
  const chart = JSON.parse(element.dataset.chart);
  const { data, ...options } = kinds[chart.kind](chart);
  drawn.get(element)?.destroy();
  const size = { width: element.clientWidth || 320, height: 200 };
  drawn.set(element, new uPlot({ ...size, legend: { show: false }, cursor: { show: false }, ...options }, data, element));
}

const all = () => document.querySelectorAll("[data-chart]").forEach(draw);

document.addEventListener("htmx:afterSettle", ({ target }) => target.querySelectorAll?.("[data-chart]").forEach(draw));
document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-along]");
  if (!button) return;
  along = button.dataset.along;
  button.parentElement.querySelectorAll("button").forEach((each) => each.setAttribute("aria-pressed", each === button));
  all();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
let resized;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(all, 150);
});
