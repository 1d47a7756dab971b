// Shows one of the recorded attention maps: which query token (rows) looks at which key token (columns).
"use strict";
(() => {
  const root = document.getElementById("attention-viewer");
  if (!root) return;
  const maps = JSON.parse(document.getElementById("attention-maps").textContent);
  const canvas = root.querySelector("canvas");
  const reading = root.querySelector("output");
  const choices = [...root.querySelectorAll("select")];
  const [modelChoice, inputChoice, sequenceChoice, layerChoice, headChoice] = choices;
  // From dark to bright: cividis, as `lengthwise plot --figure attention` has it.
  const stops = [[0, 34, 78], [42, 63, 109], [87, 93, 109], [125, 124, 120], [165, 156, 116], [210, 192, 96], [254, 232, 56]];

  // By model and input the maps of its sequences. What is there of a model is there in order.
  const models = new Map();
  for (const map of maps) {
    if (!models.has(map.model)) models.set(map.model, new Map());
    const inputs = models.get(map.model);
    if (!inputs.has(map.input)) inputs.set(map.input, []);
    inputs.get(map.input).push(map);
  }

  const inputsOfModel = () => models.get(modelChoice.value);
  const sequencesOfInput = () => inputsOfModel().get(inputChoice.value);
  const chosenMap = () => sequencesOfInput()[sequenceChoice.selectedIndex];

  function color(x) {
    const place = Math.min(Math.max(x, 0), 1) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    return stops[low].map((value, i) => Math.round(value + (place - low) * (stops[low + 1][i] - value)));
  }

  // A choice stays where the new options have it; one without a choice is not shown.
  function setOptions(select, texts) {
    const before = select.value;
    const place = Math.min(Math.max(select.selectedIndex, 0), texts.length - 1);
    select.replaceChildren(...texts.map((text) => new Option(text)));
    select.selectedIndex = texts.includes(before) ? texts.indexOf(before) : place;
    select.parentElement.hidden = texts.length < 2;
  }

  // Probabilities were rounded to 255 steps; [layers, heads, n, n].
  function values(map) {
    map.values ??= Uint8Array.from(atob(map.probabilities), (c) => c.charCodeAt(0));
    return map.values;
  }

  function probability(map, query, key) {
    const n = map.tokens.length;
    const head = map.heads > 1 ? headChoice.selectedIndex - 1 : 0;
    let largest = 0;
    for (let h = head < 0 ? 0 : head; h < (head < 0 ? map.heads : head + 1); ++h) {
      const place = ((layerChoice.selectedIndex * map.heads + h) * n + query) * n + key;
      largest = Math.max(largest, values(map)[place]);
    }
    return largest / 255;
  }

  // Up to this many tokens are written along the axes.
  const mostWritten = 48;
  const held = (map, i) => (map.numbers && map.tokens[i] < 0 ? map.numbers[i].toPrecision(2) : `${map.tokens[i]}`);
  // How much smaller a phone shows the map, whose text stays readable.
  const shrunk = () => Math.max(1, 560 / (canvas.clientWidth || 560));
  const marginOf = (map) => (map.tokens.length <= mostWritten ? shrunk() * (map.numbers ? 40 : 22) : 0);

  function draw() {
    const map = chosenMap();
    const n = map.tokens.length;
    const scale = Math.max(1, Math.round(560 / n));
    const margin = marginOf(map);
    canvas.width = canvas.height = n * scale + margin;
    const context = canvas.getContext("2d");
    if (margin > 0) {
      context.fillStyle = getComputedStyle(canvas).color;
      context.font = `${Math.min(13 * shrunk(), scale + 2)}px sans-serif`;
      context.textBaseline = "middle";
      for (let i = 0; i < n; ++i) {
        // An output place is the same token everywhere, which no input has.
        const token = i < map.first_output ? held(map, i) : "·";
        context.textAlign = "center";
        context.fillText(token, margin + (i + 0.5) * scale, margin / 2);
        context.textAlign = "right";
        context.fillText(token, margin - 5, margin + (i + 0.5) * scale);
      }
      context.translate(margin, margin);
    }
    let peak = 0;
    for (let q = 0; q < n; ++q) for (let k = 0; k < n; ++k) peak = Math.max(peak, probability(map, q, k));
    for (let q = 0; q < n; ++q) {
      for (let k = 0; k < n; ++k) {
        context.fillStyle = `rgb(${color(peak > 0 ? probability(map, q, k) / peak : 0)})`;
        context.fillRect(k * scale, q * scale, scale, scale);
      }
    }
    const first = map.first_output;
    if (first < n) {
      context.strokeStyle = "rgba(255,255,255,0.7)";
      context.setLineDash([4, 4]);
      context.beginPath();
      for (const [x0, y0, x1, y1] of [[first, 0, first, n], [0, first, n, first]]) {
        context.moveTo(x0 * scale, y0 * scale);
        context.lineTo(x1 * scale, y1 * scale);
      }
      context.stroke();
    }
    reading.textContent = "Rows are queries, columns keys; " +
      (first < n ? "the dashed lines part input from output tokens; " : "") + `brightest: ${(100 * peak).toFixed(1)} %.`;
  }

  function chooseMap() {
    const map = chosenMap();
    setOptions(layerChoice, Array.from({length: map.layers}, (_, i) => `${i + 1}`));
    const heads = Array.from({length: map.heads}, (_, i) => `${i + 1}`);
    setOptions(headChoice, map.heads > 1 ? ["largest of all", ...heads] : heads);
    draw();
  }

  function chooseInput() {
    setOptions(sequenceChoice, sequencesOfInput().map((map) => `${map.sequence}`));
    chooseMap();
  }

  function chooseModel() {
    setOptions(inputChoice, [...inputsOfModel().keys()]);
    chooseInput();
  }

  // The pointer names a query and a key, or the arrow keys do.
  let query = 0, key = 0;

  function tell() {
    const map = chosenMap();
    [query, key] = [query, key].map((i) => Math.min(i, map.tokens.length - 1));
    const told = (i) => (map.numbers && map.tokens[i] < 0 ? map.numbers[i].toPrecision(3) : `symbol ${map.tokens[i]}`);
    const name = (i) => (i < map.first_output ? `input ${i + 1} (${told(i)})` : `output ${i - map.first_output + 1}`);
    reading.textContent = `${name(query)} looks at ${name(key)}: ${(100 * probability(map, query, key)).toFixed(1)} %`;
  }

  canvas.tabIndex = 0;
  canvas.addEventListener("keydown", (event) => {
    const [down, right] = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key] ?? [0, 0];
    if (down === 0 && right === 0) return;
    event.preventDefault();
    const last = chosenMap().tokens.length - 1;
    query = Math.min(last, Math.max(0, query + down));
    key = Math.min(last, Math.max(0, key + right));
    tell();
  });
  canvas.addEventListener("pointermove", (event) => {
    const map = chosenMap();
    const n = map.tokens.length;
    const box = canvas.getBoundingClientRect();
    const margin = marginOf(map);
    const place = (offset, size) => {
      const cell = (offset / size * canvas.width - margin) / ((canvas.width - margin) / n);
      return Math.min(n - 1, Math.max(0, Math.floor(cell)));
    };
    key = place(event.clientX - box.left, box.width);
    query = place(event.clientY - box.top, box.height);
    tell();
  });
  canvas.addEventListener("pointerleave", draw);
  setOptions(modelChoice, [...models.keys()]);
  // What is shown is in the address, after its #, so that a colleague sees the same.
  const shown = /^#attention=([\d,]+)$/.exec(location.hash)?.[1].split(",") ?? [];
  const follow = [chooseModel, chooseInput, chooseMap, draw, draw];
  choices.forEach((choice, i) => choice.addEventListener("change", () => {
    follow[i]();
    history.replaceState(null, "", `#attention=${choices.map((one) => one.selectedIndex)}`);
  }));
  chooseModel();
  shown.forEach((place, i) => {
    if (!(place < choices[i]?.length)) return;
    choices[i].selectedIndex = place;
    follow[i]();
  });
  if (shown.length) root.scrollIntoView();
})();
