// Forms start commands on the server; the page polls their progress until they finish.
const part = (name, text, parent) => { const made = document.createElement(name); made.textContent = text; parent.append(made); return made; };
const table = (rows, parent) => {
  const made = part("table", "", parent), names = Object.keys(rows[0] || {});
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
const when = (iso) => iso ? iso.slice(0, 16).replace("T", " ") : "never";
const keysBefore = (cell, key) => Object.keys(cell).slice(0, Object.keys(cell).indexOf(key));
const short = (path, paths) => { const end = (one) => one.split(".").pop(); return paths.filter((one) => end(one) === end(path)).length > 1 ? path : end(path); };
const bare = (value) => String(value).replace(/^catalog:/, "");
const renderers = {
  "/ask": (answer, box) => { table(answer.cells.map((cell) => ({ ...Object.fromEntries(keysBefore(cell, "seed").map((path, _, all) => [short(path, all), bare(cell[path])])), "mean slowdown": number(cell.mean_bounded_slowdown), "median slowdown": number(cell.median_bounded_slowdown), "mean wait": formatDuration(cell.mean_wait_s), "nodes used (%)": number(100 * cell.utilization), rejected: cell.rejected })), box); part("p", answer.population, box); },
  "/explain": (answer, box, page) => { part("p", answer.answer, box); table(answer.episodes.slice(0, 200).map((one) => ({ from: formatDuration((one.from_ns - answer.submit_ns) / 1e9), for: formatDuration((one.to_ns - one.from_ns) / 1e9), "held back by": one.reason, needed: number(one.needed), free: one.free ? one.free.map(number).join(" to ") : "-", "in the way": one.blocker ?? "" })), box); link("Show node usage during the wait", page, box); },
  "/compare": (answer, box, page) => link("Open the comparison", page, box),
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
  const box = form.querySelector(".found"), bar = form.querySelector("progress"), question = form.dataset.question;
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
      bar.hidden = true; renderers[question](state.answer, box, page); return;
    }
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}));
