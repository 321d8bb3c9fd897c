// Forms start commands on the server; the page polls their progress until they finish.
const part = (name, text, parent) => { const made = document.createElement(name); made.textContent = text; parent.append(made); return made; };
const table = (rows, parent, caption) => {
  const made = part("table", "", parent), names = Object.keys(rows[0] || {});
  if (caption) part("caption", caption, made);
  const head = part("tr", "", part("thead", "", made));
  names.forEach((name) => { part("th", name.replaceAll("_", " "), head).scope = "col"; });
  const body = part("tbody", "", made);
  rows.forEach((row) => { const line = part("tr", "", body); names.forEach((name) => part("td", row[name], line)); });
};
const number = (value) => typeof value === "number" ? Number(value.toPrecision(4)).toLocaleString("en") : String(value ?? "-");
const link = (text, page, parent) => { part("a", text, part("p", "", parent)).href = page; };
// Durations as in other outputs ("2 h 3 min"); times of day without seconds.
const lengths = [[86400, "day", "days"], [3600, "h", "h"], [60, "min", "min"], [1, "s", "s"]];
const roundHalfEven = (value) => { const down = Math.floor(value), half = value - down; return half === 0.5 ? down + down % 2 : Math.round(value); };
const formatDuration = (seconds) => {
  if (seconds === null || seconds === undefined) return "-";
  if (seconds < 0) return "-" + formatDuration(-seconds);
  for (let k = 0; seconds >= 59.95 && k < 3; k += 1) {
    const [size, one, many] = lengths[k], smaller = lengths[k + 1], step = seconds >= 10 * size ? size : smaller[0];
    const rounded = roundHalfEven(seconds / step) * step, count = Math.floor(rounded / size), rest = (rounded - count * size) / smaller[0];
    if (count) return `${count.toLocaleString("en")} ${count === 1 ? one : many}` + (rest && count < 10 ? ` ${rest} ${smaller[1]}` : "");
  }
  return `${Number(seconds.toPrecision(3))} s`;
};
const when = (iso) => iso ? `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC${iso.slice(19).replace(/Z|[+-]00:00/, "")}` : "never";
// The table of runs: one row per run, sorted by the column that was clicked last.
const COLUMNS = [
  ["name", (one) => one.name], ["tags", (one) => one.asked ? one.asked.tags : ""], ["study", (one) => one.study],
  ["run at", (one) => when(one.at)], ["settings", (one) => one.settings],
  ["mean slowdown", (one) => number(one.mean_bounded_slowdown), "mean_bounded_slowdown"],
  ["median slowdown", (one) => number(one.median_bounded_slowdown), "median_bounded_slowdown"],
  ["mean wait", (one) => formatDuration(one.mean_wait_s), "mean_wait_s"],
  ["nodes used (%)", (one) => one.utilization === null ? "-" : number(100 * one.utilization), "utilization"],
  ["rejected", (one) => number(one.rejected), "rejected"],
];
const panel = document.getElementById("runs"), order = { column: 3, up: false };
let runs = [], chosen = new Set();
const isShown = (rows) => ([name, show]) => rows.some((one) => show(one) !== "-");
const identity = (one) => `${one.folder}:${one.key}`;
const showRuns = () => {
  const [, text, value] = COLUMNS[order.column], key = (one) => value ? one[value] ?? Infinity : text(one);
  const collate = (a, b) => typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
  runs.sort((a, b) => (order.up ? 1 : -1) * collate(key(a), key(b)));
  const box = panel.querySelector(".found"); box.replaceChildren();
  const made = part("table", "", box), head = part("tr", "", part("thead", "", made));
  part("td", "", head);
  const shown = COLUMNS.filter(isShown(runs));
  shown.forEach((one, place) => {
    const [name] = one, column = COLUMNS.indexOf(one);
    const cell = part("th", "", head), button = part("button", name, cell);
    cell.scope = "col"; button.type = "button";
    if (column === order.column) cell.setAttribute("aria-sort", order.up ? "ascending" : "descending");
    button.addEventListener("click", () => { order.up = column === order.column ? !order.up : true; order.column = column; showRuns(); panel.querySelectorAll("th button")[place].focus(); });
  });
  const body = part("tbody", "", made);
  runs.forEach((one) => {
    const line = part("tr", "", body), tick = part("input", "", part("td", "", line));
    tick.type = "checkbox"; tick.name = "run"; tick.value = identity(one); tick.checked = chosen.has(tick.value);
    tick.setAttribute("aria-label", `Select ${one.name}, ${one.settings}`);
    tick.addEventListener("change", () => {
      if (tick.checked) chosen.add(tick.value); else chosen.delete(tick.value);
      if (tick.checked && one.asked) { panel.elements.name.value = one.name; panel.elements.tags.value = one.asked.tags; }
    });
    shown.forEach(([name, show]) => {
      const cell = part("td", name === "name" && one.report ? "" : show(one), line);
      if (name === "settings") cell.className = "settings";
      if (name === "name" && one.report) part("a", one.name, cell).href = "/report/" + one.folder;
    });
  });
};
const loadRuns = async () => {
  const found = await (await fetch("/runs")).json();
  runs = found.flatMap(({ runs: rows, ...rest }) => rows.map((row) => ({ ...rest, ...row })));
  chosen = new Set(runs.map(identity).filter((one) => chosen.has(one)));
  document.getElementById("empty").hidden = runs.length > 0; panel.hidden = runs.length === 0;
  const cut = found.reduce((sum, one) => sum + one.count - one.runs.length, 0);
  showRuns(); if (cut) part("p", `${cut.toLocaleString("en")} more runs are in the results folders.`, panel.querySelector(".found"));
};
const change = (address) => async () => {
  const box = panel.querySelector(".answer"); box.replaceChildren();
  const folders = new Set(runs.filter((one) => one.asked && chosen.has(identity(one))).map((one) => one.folder));
  if (!folders.size) { part("p", "Select runs that were requested here.", box).className = "wrong"; return; }
  for (const folder of folders) {
    const body = new FormData(panel); body.set("results", folder);
    const response = await fetch(address, { method: "POST", body });
    if (!response.ok) part("p", await response.text(), box).className = "wrong";
  }
  await loadRuns();
};
document.getElementById("keep").addEventListener("click", change("/keep"));
document.getElementById("remove").addEventListener("click", change("/remove"));
// Runs side by side: one column per run, one row per value.
const sideBySide = (answer, box) => {
  const rows = { jobs: (run) => number(run.jobs), "mean slowdown": (run) => number(run.mean_bounded_slowdown), "median slowdown": (run) => number(run.median_bounded_slowdown), "mean wait": (run) => formatDuration(run.mean_wait_s), "nodes used (%)": (run) => number(100 * run.utilization), "jobs per 100 s": (run) => number(run.throughput_per_100s) };
  const picked = runs.filter((one) => chosen.has(identity(one))), known = picked.length === answer.runs.length;
  const label = (run, k) => `${k + 1}. ${known ? `${picked[k].name}: ${picked[k].settings}` : run.label}`;
  table(Object.entries(rows).map(([name, show]) => ({ "": name, ...Object.fromEntries(answer.runs.map((run, k) => [label(run, k), show(run)])) })), box, `Over the ${number(answer.measured_jobs[0])} jobs that finished in all of these runs.`);
};
const renderers = {
  "/ask": async (answer, box) => {
    await loadRuns();
    const rows = runs.filter((one) => one.folder === answer.results), shown = COLUMNS.slice(4).filter(isShown(rows));
    table(rows.map((one) => Object.fromEntries(shown.map(([name, show]) => [name, show(one)]))), box);
    part("p", answer.population, box); link("Open the report", "/report/" + answer.results, box);
  },
  "/explain": (answer, box, page) => { part("p", answer.answer, box); table(answer.episodes.slice(0, 200).map((one) => ({ from: formatDuration((one.from_ns - answer.submit_ns) / 1e9), for: formatDuration((one.to_ns - one.from_ns) / 1e9), "held back by": one.reason, needed: number(one.needed), free: one.free ? one.free.map(number).join(" to ") : "-", "in the way": one.blocker ?? "" })), box); link("Show node usage during the wait", page, box); },
  "/compare": (answer, box, page) => { sideBySide(answer, box); link("Open the comparison", page, box); },
  "/forecast": (answer, box, page) => {
    const start = (one) => ({ "10 %": when(one.start_p10), "50 %": when(one.start_p50), "90 %": when(one.start_p90), ...(answer.by ? { ["by " + when(answer.by)]: number(100 * one.chance_by) + " %" } : {}) });
    table(answer.jobs.slice(0, 200).map((one) => ({ job: one.job, ...start(one) })), box);
    if (answer.changes.length) table(answer.changes.map((one) => ({ change: one.change, ...start(one) })), box);
    answer.notes.forEach((text) => part("p", text, box));
    link("Open the forecast", page, box);
  },
};
document.querySelectorAll("input[type=range]").forEach((slider) => slider.addEventListener("input", () => { slider.closest("label").querySelector("output").value = slider.value; }));
document.querySelectorAll("form[data-question]").forEach((form) => form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const box = form.querySelector(".answer"), bar = form.querySelector("progress"), question = form.dataset.question;
  const wrong = (text) => { bar.hidden = true; box.replaceChildren(); part("p", text, box).className = "wrong"; };
  box.replaceChildren(); bar.hidden = false; bar.removeAttribute("value");
  const response = await fetch(question, { method: "POST", body: new FormData(form) });
  if (!response.ok) return wrong(await response.text());
  const { command, page } = await response.json();
  for (;;) {
    const state = await (await fetch("/command/" + command)).json();
    if (state.total) { bar.max = state.total; bar.value = state.done; }
    if (state.code !== null) {
      if (state.code !== 0) return wrong(state.messages.join("\n") || "The command failed without a message.");
      bar.hidden = true; await renderers[question](state.answer, box, page); return;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}));
loadRuns();
