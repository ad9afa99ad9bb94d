// Rates and depth over the last minutes (uPlot), and the heat map of how long messages waited.
/* global uPlot */
import { duration } from "./units.js";

const KEPT = 300;
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Lines {
  constructor(place, title, names, colours) {
    this.place = place;
    this.data = [[], ...names.map(() => [])];
    const hours = (plot, values) =>
      values.map((each) => new Date(each * 1000).toISOString().slice(11, 16));  // as elsewhere
    const axis = () => ({ stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 },
                          ticks: { stroke: colour("--line"), width: 1 } });
    this.plot = new uPlot({
      title, width: place.clientWidth || 300, height: 200, cursor: { y: false },
      series: [{}, ...names.map((label, at) =>
        ({ label, stroke: colour(colours[at]), width: 2, points: { show: false } }))],
      axes: [{ ...axis(), values: hours }, { ...axis(), size: 60 }],
      legend: { live: false },
      scales: { x: { range: () => [Date.now() / 1000 - KEPT, Date.now() / 1000] }, y: { range: (_, low, high) => [0, Math.max(high, 1) * 1.1] } },
    }, this.data, place);
    this.observer = new ResizeObserver(() =>
      this.plot.setSize({ width: place.clientWidth || 300, height: 200 }));
    this.observer.observe(place);
  }
  add(values) {
    [Date.now() / 1000, ...values].forEach((each, at) => {
      this.data[at].push(each);
      if (this.data[at].length > KEPT) this.data[at].shift();
    });
    this.plot.setData(this.data);
  }
  close() {
    this.observer.disconnect();
    this.plot.destroy();
  }
}

export class Heat {
  // a column for each second, a row for each half of a doubling of the time
  constructor(canvas) {
    this.canvas = canvas;
    this.columns = [];
    requestAnimationFrame(() => this.draw());
  }
  add(cells) {
    this.columns.push(cells);
    if (this.columns.length > KEPT) this.columns.shift();
    this.draw();
  }
  draw() {
    const width = this.canvas.clientWidth || 300, height = 160, scale = window.devicePixelRatio;
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    const to = this.canvas.getContext("2d");
    to.scale(scale, scale);
    const rows = this.columns.flat().map(([row]) => row);
    const low = rows.length ? Math.min(...rows) : 0, high = rows.length ? Math.max(...rows) : 1;
    const most = Math.max(1, ...this.columns.flat().map(([, count]) => count));
    const across = (width - 70) / KEPT, up = (height - 20) / (high - low + 1);
    to.fillStyle = colour("--accent");
    this.columns.forEach((cells, at) => {
      const x = 70 + (KEPT - this.columns.length + at) * across;
      for (const [row, count] of cells) {
        to.globalAlpha = 0.15 + 0.85 * Math.log1p(count) / Math.log1p(most);
        to.fillRect(x, 10 + (high - row) * up, Math.max(1, across), Math.max(1, up));
      }
    });
    to.globalAlpha = 1;
    to.fillStyle = colour("--faint");
    to.font = "12px system-ui, sans-serif";
    if (!rows.length) to.fillText("no message was taken and acknowledged yet", 12, 24);
    else {
      to.fillText(duration(2 ** ((high + 1) / 2)), 4, 18);
      to.fillText(duration(2 ** (low / 2)), 4, height - 8);
    }
  }
}
