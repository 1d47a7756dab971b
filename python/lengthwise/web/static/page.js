// Keeps a page as the server has it. The server's events name what has changed; parts and charts that show it are asked for
// again, one request at a time each.
"use strict";
(() => {
  const live = document.getElementById("live");
  const trial = /\/trials\/([^/]+)$/.exec(location.pathname)?.[1];
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const query = () => new URLSearchParams(location.search);
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));

  // Of elements with data-part or data-figure: asks for what they show.
  const askers = new Map();

  function askFor(element, load) {
    let running = false, wanted = false;
    askers.set(element, async (refresh) => {
      wanted = true;
      if (running) return;
      running = true;
      for (; wanted && element.isConnected; refresh = true) {
        if (document.hidden && element.loaded) await new Promise((seen) => document.addEventListener("visibilitychange", seen, {once: true}));
        wanted = false;
        try {
          await load(refresh);
          element.loaded = true;
        } catch (error) {
          if (!(error instanceof NoAnswer)) throw error;
          wanted = true;
          await pause(1000);
        } finally {
          element.dispatchEvent(new Event("tried"));
        }
      }
      running = false;
    });
  }

  // The page's process, or the server behind it, is away for now.
  class NoAnswer extends Error {}

  async function get(address, refresh) {
    const response = await fetch(address, {headers: refresh ? {"X-Refresh": "1"} : {}}).catch(() => { throw new NoAnswer(); });
    if (response.status === 401) location.reload();  // says what to do
    if (response.status === 503) throw new NoAnswer();
    return response;
  }

  function place(part, html) {
    const open = all("details", part).map((one) => one.open);
    const focused = part.contains(document.activeElement) ? all("a, button, input, select, summary", part).indexOf(document.activeElement) : -1;
    part.innerHTML = html;
    all("details", part).forEach((one, i) => { one.open = open[i] ?? one.open; });
    if (focused >= 0) all("a, button, input, select, summary", part)[focused]?.focus({preventScroll: true});
    showProgress();
  }

  for (const part of all("[data-part]")) {
    askFor(part, async (refresh) => {
      const wanted = query();
      wanted.set("part", part.dataset.part);
      place(part, await (await get(`${location.pathname}?${wanted}`, refresh)).text());
    });
  }

  const address = (figure, kind) => `${figure.dataset.figure}.${kind}?${query()}`;
  for (const figure of all("figure[data-figure]")) {
    askFor(figure, async (refresh) => Charts.draw(figure, await (await get(address(figure, "json"), refresh)).json()));
    for (const link of all("a.download", figure)) {
      const aim = () => { link.href = address(figure, link.dataset.kind); };
      aim();
      for (const event of ["click", "focus", "pointerenter"]) link.addEventListener(event, aim);
    }
  }

  // A choice is part of the address, so that the address shows the same to a colleague.
  function choose(name, value) {
    const wanted = query();
    if (value) wanted.set(name, value); else wanted.delete(name);
    history.replaceState(null, "", `${location.pathname}${wanted.size ? `?${wanted}` : ""}${location.hash}`);
  }
  for (const select of all("select[data-option]")) {
    select.value = query().get(select.dataset.option) ?? select.value;
    if (query().get(select.dataset.option) === null && select.value) choose(select.dataset.option, select.value);
    select.addEventListener("change", () => {
      choose(select.dataset.option, select.value);
      all("figure[data-figure]", select.closest("section")).forEach((one) => askers.get(one)(false));
    });
  }
  for (const select of all("select[data-swap]")) {
    const [first] = select.dataset.swap.split(" ");
    const figure = all("figure[data-figure]", select.closest("section")).find((one) => one.dataset.figure.endsWith(`/${first}`));
    const swap = () => { figure.dataset.figure = figure.dataset.figure.replace(/[^/]+$/, select.value); };
    select.value = query().get("by") ?? select.value;
    swap();
    select.addEventListener("change", () => { choose("by", select.value); swap(); askers.get(figure)(false); });
  }
  document.addEventListener("input", (event) => {
    const slider = event.target.closest("input[data-query]");
    if (!slider) return;
    const value = slider.dataset.values.split(" ")[slider.value];
    slider.nextElementSibling.textContent = Number(value).toLocaleString("en");
    // The last step is that of the end, whichever comes.
    choose(slider.dataset.query, slider.value === slider.max ? "" : value);
    askers.get(slider.closest("[data-part]"))(false);
  });

  function clock(seconds) {
    const [minutes, second] = [Math.floor(seconds / 60), Math.round(seconds % 60)];
    return minutes < 60 ? `${minutes}:${`${second}`.padStart(2, "0")}` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }
  let progress = {trials: {}, experiments: {}};
  function showProgress() {
    for (const bar of all("progress[data-trial]")) {
      const [done, total, rate, left] = progress.trials[bar.dataset.trial] ?? [];
      if (total === undefined) continue;
      bar.max = Math.max(total, 1);
      bar.value = done;
      bar.title = `${done.toLocaleString("en")} of ${total.toLocaleString("en")}, ${rate} steps/s`;
      for (const text of all("[data-rate]")) text.textContent = `${bar.title}${left ? `, ${clock(left)} left` : ""}`;
    }
    for (const bar of all("progress[data-experiment]")) {
      const [done, left] = progress.experiments[bar.dataset.experiment] ?? [];
      if (done === undefined) continue;
      bar.value = done * bar.max;
      const text = left === null ? "" : clock(left);
      const cell = all("[data-left]").find((one) => one.dataset.left === bar.dataset.experiment);
      if (cell) cell.textContent = text;
      const alone = document.getElementById("left");
      if (alone) alone.textContent = text && `${text} left`;
    }
  }
  // One after another, because what stands above is seen first. The first try is enough: what changes all the time, or gets no
  // answer, is asked for again without an end.
  (async () => {
    for (const element of all("[data-lazy], figure[data-figure]")) {
      const tried = new Promise((done) => element.addEventListener("tried", done, {once: true}));
      await Promise.race([askers.get(element)(false).catch(reportError), tried]);
    }
  })();

  function say(text, fault) {
    live.textContent = text;
    live.classList.toggle("failed", fault);
  }
  const events = new EventSource(`${document.body.dataset.events}?after=${document.body.dataset.after}`);
  events.addEventListener("open", () => say("live", false));
  events.addEventListener("error", () => say("not live: `lengthwise web` does not answer; trying again", true));
  events.addEventListener("change", (event) => {
    const {kinds, trials} = JSON.parse(event.data);
    if (trial && trials.length && !trials.includes(decodeURIComponent(trial))) return;
    for (const [element, ask] of askers) {
      if ((element.dataset.on ?? "").split(" ").some((kind) => kinds.includes(kind))) ask(true);
    }
  });
  events.addEventListener("progress", (event) => {
    progress = JSON.parse(event.data);
    say(progress.fault ? `not live: ${progress.fault}` : "live", Boolean(progress.fault));
    showProgress();
  });
  addEventListener("pagehide", () => events.close());
})();
