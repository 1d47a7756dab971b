// Draws a picture of lengthwise.plots (plots/numbers.py describes its JSON) with uPlot. Computes no numbers.
"use strict";
const Charts = (() => {
  const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
  const CORNERS = {
    1: [[-1, -1], [1, -1], [1, 1], [-1, 1]], 2: [[0, -1.2], [1.1, 1], [-1.1, 1]], 3: [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]],
    4: [[0, 1.2], [1.1, -1], [-1.1, -1]], 8: [[-1.2, 0], [1, -1.1], [1, 1.1]], 9: [[1.2, 0], [-1, -1.1], [-1, 1.1]],
    5: [[0, -1.3], [1.2, -0.3], [0.8, 1.1], [-0.8, 1.1], [-1.2, -0.3]], 10: [[0, -1.3], [1.1, -0.6], [1.1, 0.6], [0, 1.3], [-1.1, 0.6], [-1.1, -0.6]],
    6: [[-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2], [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]],
  };
  CORNERS[7] = CORNERS[6].map(([x, y]) => [0.7 * (x - y), 0.7 * (x + y)]);
  const MOST_MARKERS = 14;
  // Between ticks of lengths and steps.
  const WHOLE = [...Array(10).keys()].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));
  // The same marks in the legend, filled and open.
  const GLYPHS = ["●■▲◆▼⬟✚✖◀▶⬢", "○□△◇▽⬠✛✕◁▷⬡"].map((glyphs) => [...glyphs]);

  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // The colours of figures are for white paper: on dark paper they are lighter, and black, that of "none", is white.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const colorOf = (style) => (style.color === "#000000" ? variable("--ink") : dark.matches ? `color-mix(in srgb, ${style.color} 68%, white)` : style.color);
  const faded = (color, alpha) => `color-mix(in srgb, ${color} ${100 * alpha}%, transparent)`;

  function text(axis, value) {
    if (value === null || value === undefined) return "–";
    if (axis.ticks === "percent") return `${+(100 * value).toFixed(1)} %`;
    if (axis.ticks === "counts") return value.toLocaleString("en");
    return value !== 0 && (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3) ? value.toExponential(2) : `${+value.toPrecision(4)}`;
  }

  // One digit: from other ends, uPlot does not find the ticks of a logarithmic axis.
  function ends(axis) {
    if (axis.scale === "linear") return axis.range;
    const power = (value) => 10 ** Math.floor(Math.log10(value));
    const [low, high] = axis.range;
    return [Number((Math.floor(low / power(low)) * power(low)).toPrecision(1)), Number((Math.ceil(high / power(high)) * power(high)).toPrecision(1))];
  }

  function markers(style, color) {
    const corners = CORNERS[style.marker % 11];
    return (u, index, first, last) => {
      const [xs, ys] = [u.data[0], u.data[index]], size = 3.6 * devicePixelRatio, path = new Path2D();
      const there = [];
      for (let i = first; i <= last; ++i) if (ys[i] != null) there.push(i);
      const step = Math.max(1, Math.ceil(there.length / MOST_MARKERS));
      for (let place = 0; place < there.length; place += step) {
        const x = u.valToPos(xs[there[place]], "x", true), y = u.valToPos(ys[there[place]], "y", true);
        if (!corners) { path.moveTo(x + size, y); path.arc(x, y, size, 0, 2 * Math.PI); continue; }
        corners.forEach(([dx, dy], k) => path[k ? "lineTo" : "moveTo"](x + dx * size, y + dy * size));
        path.closePath();
      }
      return {fill: path, stroke: path};
    };
  }

  // What training showed and what guessing scores, behind the series.
  function background(box) {
    return (u) => {
      const {panel} = box;
      const {left, top, width, height} = u.bbox, context = u.ctx;
      context.save();
      context.beginPath();
      context.rect(left, top, width, height);
      context.clip();
      if (panel.shaded) {
        const [from, to] = panel.shaded.map((x) => u.valToPos(x, "x", true));
        context.fillStyle = faded(variable("--soft"), 0.13);
        context.fillRect(from, top, to - from, height);
      }
      for (const reference of panel.references) {
        const y = u.valToPos(reference.y, "y", true);
        context.strokeStyle = variable("--soft");
        context.setLineDash([2 * devicePixelRatio, 4 * devicePixelRatio]);
        context.beginPath();
        context.moveTo(left, y);
        context.lineTo(left + width, y);
        context.stroke();
      }
      context.restore();
    };
  }

  // Series, bands and columns of a panel.
  function contents(picture, panel) {
    const tables = [], series = [{label: picture.x.label || "x", value: (u, value) => text(picture.x, value)}], bands = [];
    const listed = new Set();
    const add = (xs, ys, one) => { tables.push([xs, ys]); series.push({spanGaps: true, ...one}); return series.length - 1; };
    for (const one of panel.series) {
      const color = colorOf(one.style), hollow = one.style.dashes % 2;
      if (one.low.length) {
        const hidden = {class: "u-unlisted", width: 0, stroke: "transparent", points: {show: false}};
        const high = add(one.x, one.high, hidden), low = add(one.x, one.low, hidden);
        bands.push({series: [high, low], fill: faded(color, 0.18)});
      }
      add(one.x, one.y, {
        label: `${GLYPHS[hollow][one.style.marker % 11]} ${one.name || "trial"}`, class: one.name && !listed.has(one.name) ? "u-line" : "u-unlisted", stroke: one.faint ? faded(color, 0.5) : color,
        width: one.faint ? 0.8 : 2, dash: DASHES[one.style.dashes % 4], value: (u, value) => text(picture.y, value),
        points: one.faint ? {show: false} : {show: true, stroke: color, fill: hollow ? variable("--paper") : color, width: 1.5,
                                             paths: markers(one.style, color)},
      });
      listed.add(one.name);
    }
    return {series, bands, data: tables.length ? uPlot.join(tables) : [[]]};
  }

  // `box.picture` and `box.panel` are what the chart shows now.
  function options(box, width, shape) {
    const {picture} = box;
    const axis = (which, more) => ({
      stroke: variable("--soft"), grid: {stroke: variable("--line"), width: 1}, ticks: {stroke: variable("--line")},
      font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", label: picture[which].label, labelSize: 20,
      values: (u, values) => values.map((value) => (value === null ? null : text(picture[which], value))), ...more,
    });
    const scale = (which) => ({
      time: false, distr: picture[which].scale === "linear" ? 1 : 3,
      ...(picture[which].range ? {range: (u, low, high) => (u.zoomed && which === "x" ? [low, high] : ends(box.picture[which]))} : {}),
    });
    const whole = picture.x.scale === "linear" && box.panel.series.every((one) => one.x.every(Number.isInteger));
    return {
      width, height: Math.round(Math.min(340, Math.max(280, 0.62 * width))), series: shape.series, bands: shape.bands,
      scales: {x: scale("x"), y: scale("y")}, axes: [axis("x", {size: 36, ...(whole ? {incrs: WHOLE} : {})}), axis("y", {size: 62})],
      cursor: {focus: {prox: 24}, drag: {x: true, y: false}}, legend: {live: true, markers: {width: 0, fill: (u, index) => shape.series[index].stroke}},
      hooks: {
        drawClear: [background(box)],
        setSelect: [(u) => { u.zoomed = u.select.width > 0; }],
        // A line's band goes with it.
        setSeries: [(u, index, change) => {
          if (change.show === undefined) return;
          const band = u.bands.findIndex((one) => one.series[1] + 1 === index);
          if (band >= 0) u.bands[band].series.forEach((edge) => { if (u.series[edge].show !== change.show) u.setSeries(edge, {show: change.show}); });
        }],
      },
    };
  }

  // How far a key moves both ends of the x-axis, in parts of it.
  const KEYS = {"+": [0.2, -0.2], "-": [-0.33, 0.33], ArrowLeft: [-0.2, -0.2], ArrowRight: [0.2, 0.2]};

  function zoom(u, event) {
    const moves = KEYS[event.key];
    if (!moves && event.key !== "Escape") return;
    event.preventDefault();
    u.zoomed = Boolean(moves);
    if (!moves) return u.setData(u.data);
    const {distr, min, max} = u.scales.x, [to, from] = distr === 3 ? [Math.log10, (value) => 10 ** value] : [Number, Number];
    const width = to(max) - to(min);
    u.setScale("x", {min: from(to(min) + moves[0] * width), max: from(to(max) + moves[1] * width)});
  }

  function drawPanel(box, picture, panel) {
    Object.assign(box, {picture, panel});
    const shape = contents(picture, panel);
    const width = Math.max(260, box.clientWidth);
    const kind = JSON.stringify([shape.series.map((one) => [one.label, one.class]), picture.x.label, picture.y.scale, width]);
    if (box.chart && box.kind === kind) {
      box.chart.setData(shape.data, !box.chart.zoomed);
    } else {
      box.chart?.destroy();
      box.kind = kind;
      box.chart = new uPlot(options(box, width, shape), shape.data, box);
      box.chart.over.addEventListener("dblclick", () => { box.chart.zoomed = false; });
      box.chart.over.tabIndex = 0;
      box.chart.over.addEventListener("keydown", (event) => zoom(box.chart, event));
      for (const name of box.querySelectorAll(".u-line th")) {
        name.tabIndex = 0;
        name.addEventListener("keydown", (event) => { if (event.key === "Enter") name.click(); });
      }
    }
  }

  // Draws the picture into a figure element.
  function draw(figure, picture) {
    const panels = figure.querySelector(".panels");
    figure.picture = picture;
    figure.classList.toggle("empty", !picture.panels);
    if (!picture.panels) {
      panels.replaceChildren();
      figure.querySelector("figcaption").textContent = picture.message;
      return;
    }
    const references = (panel) => panel.references.map((one) => `┈ ${one.label}`).join(", ");
    const titles = picture.panels.map((panel) => panel.title + references(panel)).join("\n");
    if (panels.children.length !== picture.panels.length || panels.titles !== titles) {
      panels.titles = titles;
      panels.replaceChildren(...picture.panels.map((panel) => {
        const box = document.createElement("div"), head = document.createElement("h4"), place = document.createElement("div");
        const dotted = document.createElement("span");
        dotted.textContent = references(panel);
        head.append(`${panel.title} `, dotted);
        box.append(...(titles ? [head] : []), place);
        return box;
      }));
    }
    picture.panels.forEach((panel, i) => drawPanel(panels.children[i].lastElementChild, picture, panel));
    const shaded = picture.panels.some((panel) => panel.shaded) ? `Shaded: ${picture.shaded_label}. ` : "";
    figure.querySelector("figcaption").textContent = `${shaded}${picture.caption} ${picture.band_caption}`.trim();
    figure.dataset.points = Math.max(0, ...picture.panels.map((panel) => Math.max(0, ...panel.series.map((one) => one.x.length))));
    figure.dataset.last = Math.max(0, ...picture.panels.map((panel) => Math.max(0, ...panel.series.map((one) => one.x.at(-1) ?? 0))));
  }

  function redraw() {
    for (const figure of document.querySelectorAll("figure[data-figure]")) {
      if (!figure.picture?.panels) continue;
      for (const box of figure.querySelectorAll(".panels > div > div:last-child")) box.kind = "";
      draw(figure, figure.picture);
    }
  }
  dark.addEventListener("change", redraw);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; redraw(); } });
  return {draw};
})();
