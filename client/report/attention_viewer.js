// Shows one of the recorded attention maps: which query token (rows) looks at which key token (columns).
"use strict";
(() => {
  const root = document.getElementById("attention-viewer");
  if (!root) return;
  const maps = JSON.parse(document.getElementById("attention-maps").textContent);
  const canvas = root.querySelector("canvas");
  const reading = root.querySelector("output");
  const [mapChoice, layerChoice, headChoice] = root.querySelectorAll("select");
  // From dark to bright, as in the pictures of `lengthwise plot --figure attention`.
  const stops = [[0, 0, 4], [81, 18, 124], [183, 55, 121], [252, 137, 97], [252, 253, 191]];

  function color(x) {
    const place = Math.min(Math.max(x, 0), 1) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    return stops[low].map((value, i) => Math.round(value + (place - low) * (stops[low + 1][i] - value)));
  }

  function setOptions(select, texts) {
    const chosen = Math.min(Math.max(select.selectedIndex, 0), texts.length - 1);
    select.replaceChildren(...texts.map((text) => new Option(text)));
    select.selectedIndex = chosen;
  }

  // Probabilities were rounded to 255 steps; [layers, heads, n, n].
  function values(map) {
    map.values ??= Uint8Array.from(atob(map.probabilities), (c) => c.charCodeAt(0));
    return map.values;
  }

  function probability(map, query, key) {
    const n = map.tokens.length;
    const head = headChoice.selectedIndex - 1;
    let largest = 0;
    for (let h = head < 0 ? 0 : head; h < (head < 0 ? map.heads : head + 1); ++h) {
      const place = ((layerChoice.selectedIndex * map.heads + h) * n + query) * n + key;
      largest = Math.max(largest, values(map)[place]);
    }
    return largest / 255;
  }

  function draw() {
    const map = maps[mapChoice.selectedIndex];
    const n = map.tokens.length;
    const scale = Math.max(1, Math.round(560 / n));
    canvas.width = canvas.height = n * scale;
    const context = canvas.getContext("2d");
    let peak = 0;
    for (let q = 0; q < n; ++q) for (let k = 0; k < n; ++k) peak = Math.max(peak, probability(map, q, k));
    for (let q = 0; q < n; ++q) {
      for (let k = 0; k < n; ++k) {
        context.fillStyle = `rgb(${color(peak > 0 ? probability(map, q, k) / peak : 0)})`;
        context.fillRect(k * scale, q * scale, scale, scale);
      }
    }
    context.strokeStyle = "rgba(255,255,255,0.7)";
    context.setLineDash([4, 4]);
    context.beginPath();
    for (const [x0, y0, x1, y1] of [[map.input, 0, map.input, n], [0, map.input, n, map.input]]) {
      context.moveTo(x0 * scale, y0 * scale);
      context.lineTo(x1 * scale, y1 * scale);
    }
    context.stroke();
    reading.textContent = `Rows are queries, columns keys; the dashed lines part input from output tokens; ` +
      `brightest: ${(100 * peak).toFixed(1)} %.`;
  }

  function chooseMap() {
    const map = maps[mapChoice.selectedIndex];
    setOptions(layerChoice, Array.from({length: map.layers}, (_, i) => `layer ${i + 1}`));
    setOptions(headChoice, ["largest of all heads", ...Array.from({length: map.heads}, (_, i) => `head ${i + 1}`)]);
    draw();
  }

  canvas.addEventListener("pointermove", (event) => {
    const map = maps[mapChoice.selectedIndex];
    const n = map.tokens.length;
    const box = canvas.getBoundingClientRect();
    const key = Math.min(n - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * n)));
    const query = Math.min(n - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * n)));
    const name = (i) => (i < map.input ? `input ${i + 1} (symbol ${map.tokens[i]})` : `output ${i - map.input + 1}`);
    reading.textContent = `${name(query)} looks at ${name(key)}: ${(100 * probability(map, query, key)).toFixed(1)} %`;
  });
  canvas.addEventListener("pointerleave", draw);
  setOptions(mapChoice, maps.map((map) => map.title));
  mapChoice.addEventListener("change", chooseMap);
  layerChoice.addEventListener("change", draw);
  headChoice.addEventListener("change", draw);
  chooseMap();
})();
