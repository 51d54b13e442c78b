// Shows /watch.json, once a second while the page is visible. Texts are set as text, never as HTML: names are chosen by others.
"use strict";

const EVERY_MS = 1000;
const TIMELINE_S = 12;
const LANE_PX = 22;
const HUES = [205, 160, 265, 45, 300, 95]; // of nodes: none is taken for red
const SVG = "http://www.w3.org/2000/svg";

const REMEMBER_MS = 5000; // the past has a point each 5 s

let shown = null; // the latest picture
let pressed = false; // what is under a finger must not move
const past = new Map(); // by address: what was told there, and when

const known = (v) => v !== undefined && v !== null;
const percent = (v) => (known(v) ? `${Math.round(100 * v)} %` : "?");
const ms = (s) => (known(s) ? `${s < 0.0995 ? (1e3 * s).toFixed(1) : Math.round(1e3 * s)} ms` : "?");
/** Two times of one kind, as 9.5/140 ms. */
const span = (a, b) => [a, b].map((s) => (s < 0.01 ? (1e3 * s).toFixed(1) : Math.round(1e3 * s))).join("/") + " ms";
const seconds = (text) => parseFloat(text || "0");

function short(v) {
  if (!known(v)) return "?";
  const units = [[1e9, "G"], [1e6, "M"], [1e4, "k"]];
  for (const [size, name] of units) if (v >= 0.995 * size) return `${(v / (name === "k" ? 1e3 : size)).toFixed(name === "k" ? 0 : 1)} ${name}`;
  return v >= 10 || v === 0 ? String(Math.round(v)) : v.toFixed(1);
}

/** An element with a class, a text or children. */
function make(tag, kind, content) {
  const e = document.createElement(tag);
  if (kind) e.className = kind;
  for (const c of [content ?? []].flat()) e.append(c);
  return e;
}

/** A segment of a stacked bar. Widths cannot be written as a style attribute under the page's own policy, but as a property. */
function part(kind, share) {
  const e = make("i", kind);
  e.style.width = `${100 * Math.max(0, share)}%`;
  return e;
}

/** Idle, wait that the GPU did not feel, and the rest of a step. Where idle is unknown all of the wait may be felt. */
function stack(idle, wait, tall) {
  const felt = known(idle) ? idle : 0;
  const rest = Math.max(0, (wait || 0) - felt);
  const bar = make("div", tall ? "stack tall" : "stack", [part("idle", felt), part("wait", rest), part("work", 1 - felt - rest)]);
  bar.title = `idle ${percent(idle)}, wait ${percent(wait)}`;
  return bar;
}

/** A table; columns are [name, class, cell of a row]. */
function table(columns, rows, decorate) {
  const head = make("tr", "", columns.map(([name, kind]) => make("th", kind, name)));
  const body = rows.map((row) => {
    const line = make("tr", "", columns.map(([, kind, cell]) => make("td", kind, cell(row))));
    for (const cell of line.querySelectorAll("td.text")) cell.title = cell.textContent; // whole, where it is cut off
    if (decorate) decorate(line, row);
    return line;
  });
  return make("table", "", [make("thead", "", head), make("tbody", "", body)]);
}

/** What the address asks for: a job, and maybe one of its ranks or a node. */
function place() {
  const asked = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(["job", "plan", "rank", "node"].map((name) => [name, asked.get(name)]));
}

/** A link to a place on this page, which can be sent to others. */
function link(to, text) {
  const a = make("a", "", text);
  a.href = `#${new URLSearchParams(to)}`;
  return a;
}

const placeOf = (job) => (job ? { job: job.job, plan: job.plan } : {});

function show(id, content) {
  const section = document.getElementById(id);
  section.hidden = content === null;
  if (content !== null) section.querySelector("div").replaceChildren(...[content].flat());
}

const wasted = (job) => (known(job.idle) ? job.idle * job.world : null);
const loss = (rank) => (known(rank.idle) ? rank.idle : rank.wait);
const stepped = (job) => job.ranks.filter((r) => r.step_p50 > 0);
// Where some ranks know their idle, a wait that may be hidden is nothing to compare with it.
const comparable = (job) => (known(job.idle) ? stepped(job).filter((r) => known(r.idle)) : stepped(job));
const worst = (job) => comparable(job).sort((a, b) => loss(b) - loss(a))[0];

const same = (a, b) => a.job === b.job && a.plan === b.plan;

/** A job's name, with a part of its plan where another one has the same name. */
function title(picture, job) {
  const name = job.job || "(no name)";
  return picture.jobs.some((j) => j.job === job.job && !same(j, job)) ? `${name} #${job.plan.slice(0, 4)}` : name;
}

/** What a job consists of, as far as is known: who tells its GPU's idle has one. */
function member(job) {
  return known(job.idle) ? "GPU" : "rank";
}

function glance(picture, job) {
  const section = document.getElementById("glance");
  if (!job) {
    const what = picture.processes.length ? "No job is running" : "Nothing is running here";
    const then = picture.processes.length ? "Nodes wait for trainers." : "Trainers are found as soon as a feedwater.Loader has given its first batch.";
    section.replaceChildren(make("div", "name", what), make("p", "", then));
    return;
  }
  const all = `${job.world} ${member(job)}${job.world === 1 ? "" : "s"}`;
  const name = make("div", "name", [title(picture, job), make("span", `verdict ${job.verdict}`, job.verdict)]);
  const big = make("div", "big");
  if (known(job.idle)) big.append(wasted(job).toFixed(1), make("small", "", ` of ${all} stand still for data, ${percent(job.idle)} of each step`));
  else if (known(job.wait)) big.append(percent(job.wait), make("small", "", ` of each step waits for data, at most ${(job.wait * job.world).toFixed(1)} of ${all}; idle unknown`));
  else big.append("?", make("small", "", ` of ${all}: no steps yet`));
  const rows = make("dl");
  const row = (what, text) => text && rows.append(make("dt", "", what), make("dd", "", text));
  row("cause", job.cause);
  row("do", job.action);
  const w = worst(job);
  if (w && job.verdict !== "healthy") {
    const where = job.ranks.some((r) => r.host !== w.host) ? ` on ${w.host}` : "";
    row("worst", `rank ${w.rank}${where}: idle ${percent(w.idle)}, wait p50/p99 ${span(w.wait_p50, w.wait_p99)}, ready ${w.ready}/${w.window}`);
  }
  row("gets", known(job.supply) ? `${short(job.supply)} images/s${known(job.demand) ? ` of ${short(job.demand)} it would take` : ""}` : "");
  section.replaceChildren(name, big, rows);
}

/** Processes that were asked and tell nothing, each with the reason. */
function errors(picture) {
  if (!picture.errors) return show("errors", null);
  show("errors", table([["process", "text", (e) => e.addr], ["", "text state-bad whole", (e) => e.error]], picture.errors));
}

function jobs(picture, job) {
  if (picture.jobs.length < 2) return show("jobs", null);
  const columns = [
    ["job", "text", (j) => title(picture, j)],
    ["verdict", "text", (j) => make("span", `verdict ${j.verdict}`, j.verdict)],
    ["ranks", "wide", (j) => String(j.world)],
    ["wasted", "", (j) => (known(j.idle) ? wasted(j).toFixed(1) : "?")],
    ["idle", "", (j) => percent(j.idle)],
    ["wait", "wide", (j) => percent(j.wait)],
    ["images/s", "wide", (j) => short(j.supply)],
    ["nodes", "wide", (j) => (known(j.nodes_wanted) ? `${j.nodes}/${j.nodes_wanted}` : String(j.nodes))],
  ];
  show("jobs", table(columns, picture.jobs, (line, j) => {
    line.classList.add("choice");
    line.classList.toggle("chosen", j === job);
    line.tabIndex = 0;
    const choose = () => { location.hash = new URLSearchParams(placeOf(j)); };
    line.addEventListener("click", choose);
    line.addEventListener("keydown", (e) => { if (e.key === "Enter") choose(); });
  }));
}

function step(job) {
  const all = job ? stepped(job) : [];
  if (!all.length) return show("step", null);
  const mean = all.reduce((sum, r) => sum + r.step_p50, 0) / all.length;
  const idle = known(job.idle) ? job.idle : null;
  const hidden = Math.max(0, (job.wait || 0) - (idle || 0));
  const entry = (kind, name, share) => make("span", "", [make("i", kind), `${name} ${ms(share * mean)}, ${percent(share)}`]);
  const parts = [];
  if (known(idle)) parts.push(entry("idle", "GPU idle for data", idle));
  parts.push(entry("wait", known(idle) ? "wait, GPU at work" : "wait, idle unknown", hidden));
  parts.push(entry("work", "the rest", Math.max(0, 1 - hidden - (idle || 0))));
  parts.push(make("span", "", `step ${ms(mean)} (median, mean over ranks)`));
  show("step", [stack(job.idle, job.wait, true), make("div", "legend", parts)]);
}

const stepOf = (r) => (Number(r.step) >= 2 ** 32 ? `epoch ${Math.floor(Number(r.step) / 2 ** 32)}` : r.step);
const stateOf = (r) => (r.blocked ? `blocked ${Math.round(seconds(r.blocked))} s` : r.silent ? `silent ${Math.round(seconds(r.silent))} s` : "");

function ranks(job) {
  if (!job || !job.ranks.length) return show("ranks", null);
  show("ranks", table([
    ["rank", "", (r) => link({ ...placeOf(job), rank: r.rank }, String(r.rank))],
    ["host", "text wide", (r) => r.host],
    ["step", "wide", stepOf],
    ["time of a step", "bar", (r) => stack(r.idle, r.wait)],
    ["idle", "", (r) => percent(r.idle)],
    ["wait", "", (r) => percent(r.wait)],
    ["step p50/p99", "wide", (r) => span(r.step_p50, r.step_p99)],
    ["wait p50/p99", "wide", (r) => span(r.wait_p50, r.wait_p99)],
    ["ready", "wide", (r) => `${r.ready}/${r.window}`],
    ["", "text state-bad", stateOf],
  ], job.ranks));
}

/** Nodes that are there as full squares, those that are wanted and are not as empty ones. */
function wanted(job, live) {
  if (!job || !known(job.nodes_wanted)) return [];
  const dots = make("div", "dots");
  for (let i = 0; i < Math.min(Math.max(live, job.nodes_wanted), 200); i++) {
    dots.append(make("i", i >= live ? "missing" : i >= job.nodes_wanted ? "spare" : ""));
  }
  const bound = job.upper_bound ? " at most" : "";
  return [make("div", "wanted", [`${live} live, ${job.nodes_wanted} wanted${bound}`, dots])];
}

function nodes(picture, job) {
  if (!picture.nodes.length) return show("nodes", null);
  const live = picture.nodes.filter((n) => n.state === "ready").length;
  show("nodes", [...wanted(job, live), table([
    ["node", "text", (n) => link({ ...placeOf(job), node: n.addr }, n.addr)],
    ["state", "text", (n) => make("span", n.state === "ready" ? "state-good" : "state-bad", n.state)],
    ["cores", "", (n) => (known(n.effective_cores) ? `${Math.min(n.effective_cores, n.cores).toFixed(1)}/${short(n.cores)}` : short(n.cores))],
    ["queued", "wide", (n) => `${short(n.queued)} s`],
    ["wants", "wide", (n) => String(n.wants)],
    ["images/s", "", (n) => short(n.samples_per_second)],
    ["MB/s", "wide", (n) => short(n.bytes_per_second / 1e6)],
    ["core-ms/image", "wide", (n) => short(known(n.core_seconds_per_sample) ? 1e3 * n.core_seconds_per_sample : null)],
    ["reading", "wide", (n) => percent(n.read)],
  ], picture.nodes), ...picture.nodes.filter((n) => n.error).map((n) => make("p", "state-bad", `${n.addr}: ${n.error}`)),
    ...picture.nodes.flatMap((n) => (n.scans ?? []).map((s) => make("p", "", `${n.addr}: listing ${s.folder}: ${s.files} files, ${short(s.files_per_second)} a second`)))]);
}

function gpus(picture) {
  if (!picture.gpus.length) return show("gpus", null);
  const giga = (v) => (known(v) ? (Number(v) / 1e9).toFixed(1) : "?");
  show("gpus", table([
    ["GPU", "", (g) => String(g.index)],
    ["host", "text wide", (g) => g.host],
    ["name", "text", (g) => g.name.replace(/^NVIDIA /, "")],
    ["busy", "", (g) => percent(g.busy)],
    ["memory GB", "", (g) => `${giga(g.memory_used_bytes)}/${giga(g.memory_total_bytes)}`],
    ["processes", "wide", (g) => String(g.processes.length)],
    ["", "text", (g) => g.unknown || g.throttles.join(", ")],
  ], picture.gpus));
}

function machines(picture) {
  if (!picture.processes.length) return show("machines", null);
  const mega = (v) => short(known(v) ? v / 1e6 : null);
  show("machines", table([
    ["process", "text", (p) => `${p.kind} ${p.host}`],
    ["cores", "", (p) => `${p.busy_cores.toFixed(1)}/${short(p.cores)}`],
    ["memory MB", "wide", (p) => short(Number(p.resident_bytes) / 1e6)],
    ["host CPU", "", (p) => percent(p.host_busy)],
    ["I/O wait", "", (p) => percent(p.host_io_wait)],
    ["read MB/s", "wide", (p) => mega(p.disk_read_bytes_per_second)],
    ["network MB/s", "wide", (p) => mega(p.network_receive_bytes_per_second)],
    ["version", "text wide", (p) => p.version],
  ], picture.processes));
}

function shape(tag, attributes, text) {
  const e = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  if (text) e.textContent = text;
  return e;
}

/** One lane per node; a box from the moment a want was sent to the moment it ended. */
function timeline(job) {
  const attempts = job ? job.ranks.flatMap((r) => r.attempts.map((a) => ({ ...a, rank: r.rank }))) : [];
  const recent = attempts.filter((a) => seconds(a.ended) < TIMELINE_S);
  if (!recent.length) return show("timeline", null);
  const lanes = [...new Set(recent.map((a) => a.node))].sort();
  const width = 1000, left = 0, label = 14, height = lanes.length * (LANE_PX + label) + 18;
  const x = (ago) => left + (width - left) * (1 - Math.min(ago, TIMELINE_S) / TIMELINE_S);
  const svg = shape("svg", { height, role: "img", "aria-label": "wants by node over time" });
  const at = (px) => `${(100 * px) / width}%`;
  for (let s = 0; s <= TIMELINE_S; s += 3) {
    svg.append(shape("line", { x1: at(x(s)), x2: at(x(s)), y1: 0, y2: height - 16 }));
    const anchor = s === 0 ? "end" : s === TIMELINE_S ? "start" : "middle";
    svg.append(shape("text", { x: at(x(s)), y: height - 3, "text-anchor": anchor }, s === 0 ? "now" : `−${s} s`));
  }
  lanes.forEach((node, i) => {
    const top = i * (LANE_PX + label);
    svg.append(shape("text", { x: 2, y: top + 11 }, node));
    const rows = []; // when each row of the lane is free again
    for (const a of recent.filter((a) => a.node === node).sort((p, q) => seconds(q.sent) - seconds(p.sent))) {
      const from = seconds(a.sent), to = seconds(a.ended);
      let row = rows.findIndex((free) => free >= from);
      if (row < 0) row = rows.length < 4 ? rows.push(0) - 1 : 3;
      rows[row] = to;
      const color = { done: `hsl(${HUES[i % HUES.length]} 60% 55%)`, out: "var(--faint)", failed: "var(--bad)", cancelled: "var(--line)" }[a.state];
      const box = shape("rect", { x: at(x(from)), width: at(Math.max(x(to) - x(from), 2)), y: top + label + (row * LANE_PX) / 4, height: LANE_PX / 4 - 1, rx: 1 });
      box.style.fill = color;
      if (a.hedge) { box.style.stroke = "var(--text)"; box.style.strokeWidth = "1.5"; }
      box.append(shape("title", {}, `batch ${a.batch}, rank ${a.rank}: ${a.state}${a.hedge ? ", hedge" : ""}, ${ms(from - to)}`));
      svg.append(box);
    }
  });
  const entry = (fill, name) => { const i = make("i"); i.style.background = fill; return make("span", "", [i, name]); };
  const framed = entry("none", "hedge");
  framed.firstChild.style.border = "1.5px solid var(--text)";
  show("timeline", [svg, make("div", "legend", [entry("var(--faint)", "out"), entry("var(--bad)", "failed"), entry("var(--line)", "cancelled"), framed])]);
}

/** The figures of a subject's past, each with its name, how its values are written, a class for its colour, and the least top of its scale. */
const FIGURES = {
  wait: ["wait", percent, "wait", 0.1],
  idle: ["GPU idle for data", percent, "idle", 0.1],
  images_per_second: ["images/s", short, "", 1],
  nodes: ["nodes ready", (v) => String(Math.round(v)), "", 1],
  step_seconds: ["step, median", ms, "", 0],
  effective_cores: ["cores it is worth at work", short, "", 1],
  wants: ["wants it holds", (v) => String(Math.round(v)), "", 1],
};

/** Lines through neighbours that are known; where nothing is known there is none. */
function runs(points) {
  const all = [];
  points.forEach((v, i) => {
    if (!known(v)) return;
    if (i === 0 || !known(points[i - 1])) all.push([]);
    all.at(-1).push([i, v]);
  });
  return all;
}

function spark(figure, points, everySeconds) {
  const [name, write, kind, least] = FIGURES[figure];
  const values = points.filter(known);
  const top = Math.max(least, ...values), low = Math.min(...values), width = points.length;
  const minutes = Math.round((width * everySeconds) / 60), gaps = ((width - values.length) * everySeconds) / 60;
  const range = values.length ? `${write(low)} to ${write(Math.max(...values))}` : "unknown";
  const now = points.at(-1);
  const unknown = values.length && gaps >= 0.5 ? `, ${gaps.toFixed(0)} min unknown` : "";
  const label = `${name}, last ${minutes} minutes: now ${known(now) ? write(now) : "unknown"}; ${range}${unknown}`;
  const svg = shape("svg", { viewBox: `0 0 ${width} 100`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  const at = ([i, v]) => `${i + 0.5} ${98 - (94 * v) / (top || 1)}`;
  for (const run of runs(points)) {
    const [first, last] = [run[0][0], run.at(-1)[0] + 1];
    const line = `${first} ${at(run[0]).split(" ")[1]} L ${run.map(at).join(" L ")} L ${last} ${at(run.at(-1)).split(" ")[1]}`;
    svg.append(shape("path", { class: `area ${kind}`, d: `M ${first} 100 L ${line} L ${last} 100 Z` }), shape("path", { class: kind, d: `M ${line}` }));
  }
  svg.append(shape("title", {}, label));
  return make("figure", "", [
    make("figcaption", "", [name, make("b", "", known(now) ? write(now) : "?")]), svg,
    make("div", "range", [make("span", "", `−${minutes} min`), make("span", "", `${range}${unknown}`), make("span", "", "now")]),
  ]);
}

/** Sparklines of a subject, as far as its past has come. */
function sparks(query) {
  const told = past.get(`history.json?${query}`)?.told;
  if (!told) return make("p", "", "Its past is on its way.");
  const figures = Object.entries(told.figures).filter(([name]) => FIGURES[name]);
  if (!figures.length) return make("p", "", `No past: ${told.unknown}.`);
  const order = Object.keys(FIGURES);
  figures.sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
  return make("div", "sparks", figures.map(([name, points]) => spark(name, points, told.every_s)));
}

function tenMinutes(job) {
  show("past", job ? sparks(new URLSearchParams(placeOf(job))) : null);
}

/** Small pictures of a batch that the node sent, or why there are none. */
function batch(job) {
  const told = job && past.get(batchOf(job))?.told;
  if (!told) return show("batch", null);
  if (!told.pictures.length) return show("batch", make("p", "note", `No pictures: ${told.missing}.`));
  const row = make("div", "row", told.pictures.map((data, i) => {
    const picture = make("img", "");
    picture.src = data;
    picture.alt = `picture ${i + 1} of a batch of epoch ${told.epoch}`;
    return picture;
  }));
  const note = `Sent at ${new Date(told.taken).toLocaleTimeString()} to rank ${told.rank}, epoch ${told.epoch}; as the node makes them, before they are normalized or erased.`;
  show("batch", [row, make("p", "note", note)]);
}

const batchOf = (job) => `batch.json?${new URLSearchParams(placeOf(job))}`;

const facts = (pairs) => make("dl", "", pairs.filter(([, text]) => text).flatMap(([what, text]) => [make("dt", "", what), make("dd", "", text)]));

function rankFacts(r) {
  const e = r.effort ?? {};
  const timed = r.step_p50 > 0;
  return facts([
    ["host", r.host], ["step", stepOf(r)], ["state", stateOf(r) || "at work"], ["ready", `${r.ready} of ${r.window} batches`],
    ["idle", percent(r.idle)], ["wait", timed ? percent(r.wait) : "?"],
    ["step p50/p99", timed ? span(r.step_p50, r.step_p99) : "?"], ["wait p50/p99", timed ? span(r.wait_p50, r.wait_p99) : "?"],
    ["copy to the GPU", percent(r.transfer)],
    ["batches so far", r.effort ? String(e.batches) : "?"],
    ["second nodes asked", r.effort ? `${e.hedges}, first ${e.hedges_won} times` : "?"],
    ["wants moved, late", r.effort ? `${e.moves}, ${e.missed}` : "?"],
  ]);
}

function nodeFacts(n) {
  return facts([
    ["state", n.state], ["error", n.error], ["cores", short(n.cores)], ["queued", `${short(n.queued)} core-seconds`],
    ["wants", String(n.wants)], ["images/s", short(n.samples_per_second)], ["MB/s", short(n.bytes_per_second / 1e6)],
    ["core-ms/image", short(known(n.core_seconds_per_sample) ? 1e3 * n.core_seconds_per_sample : null)],
    ["reading", percent(n.read)], ["decoding", percent(n.decode)], ["transforming", percent(n.transform)],
    ...(known(n.kept) ? [["pixels kept", percent(n.kept)]] : []),
  ]);
}

/** All of the rank or the node that the address names. */
function detail(picture, job) {
  const at = place();
  if (at.rank === null && at.node === null) return show("detail", null);
  const name = (text) => make("div", "name", [text, link(placeOf(job), "back to the job")]);
  if (at.node !== null) {
    const node = picture.nodes.find((n) => n.addr === at.node);
    return show("detail", [name(`node ${at.node}`), node ? nodeFacts(node) : make("p", "", "It is not there now."), sparks(subjects(job)[1])]);
  }
  const rank = job?.ranks.find((r) => String(r.rank) === at.rank);
  show("detail", [name(`rank ${at.rank} of ${job ? title(picture, job) : "?"}`), rank ? rankFacts(rank) : make("p", "", "It is not there now."), sparks(subjects(job)[1])]);
}

/** What the past is asked for: the job that is shown, then the rank or the node that the address names. */
function subjects(job) {
  const at = place();
  const all = job ? [new URLSearchParams(placeOf(job))] : [];
  if (at.node !== null) return [all[0] ?? null, new URLSearchParams({ node: at.node })];
  if (at.rank !== null && job) all.push(new URLSearchParams({ ...placeOf(job), rank: at.rank }));
  return all;
}

/** Fetches the past of what is shown, each 5 s. */
async function remember(job) {
  const wanted = subjects(job).filter(known).map((query) => `history.json?${query}`);
  if (job) wanted.push(batchOf(job));
  for (const query of past.keys()) if (!wanted.includes(query)) past.delete(query);
  let news = false;
  for (const query of wanted) {
    if (Date.now() - (past.get(query)?.at ?? 0) < REMEMBER_MS) continue;
    const answer = await fetch(query, { cache: "no-store", signal: AbortSignal.timeout(5000) });
    if (answer.ok) past.set(query, { at: Date.now(), told: await answer.json() });
    news = true;
  }
  return news;
}

function chosenJob(picture) {
  const at = place();
  return picture.jobs.find((j) => j.job === at.job && j.plan === at.plan) || picture.jobs[0];
}

/** Draws the picture, and leaves the keyboard where it was. */
function draw(picture) {
  const focused = document.activeElement?.getAttribute("href");
  shown = picture;
  drawAll(picture);
  if (focused) [...document.querySelectorAll("a")].find((a) => a.getAttribute("href") === focused)?.focus({ preventScroll: true });
}

function drawAll(picture) {
  const job = chosenJob(picture);
  const hosts = [...new Set(picture.processes.map((p) => p.host))];
  document.getElementById("where").textContent = hosts.slice(0, 4).join(", ") + (hosts.length > 4 ? ` and ${hosts.length - 4} more` : "");
  document.title = job && known(job.idle) ? `${wasted(job).toFixed(1)} GPUs idle · Feedwater` : "Feedwater";
  glance(picture, job);
  detail(picture, job);
  tenMinutes(job);
  batch(job);
  errors(picture);
  jobs(picture, job);
  step(job);
  timeline(job);
  ranks(job);
  nodes(picture, job);
  gpus(picture);
  machines(picture);
}

async function refresh() {
  const live = document.getElementById("live");
  try {
    const answer = await fetch("watch.json", { cache: "no-store", signal: AbortSignal.timeout(5000) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const picture = await answer.json();
    if (!pressed) draw(picture);
    live.className = "";
    live.textContent = `live ${new Date(picture.time).toLocaleTimeString()}`;
    if (await remember(chosenJob(picture)) && !pressed) draw(picture);
  } catch (error) {
    live.className = "off";
    live.textContent = "not reachable: what is shown is old";
    console.warn(error);
  }
}

async function run() {
  for (;;) {
    if (!document.hidden) await refresh();
    await new Promise((done) => setTimeout(done, EVERY_MS));
  }
}

addEventListener("pointerdown", () => { pressed = true; });
for (const name of ["pointerup", "pointercancel", "blur"]) addEventListener(name, () => { pressed = false; });
addEventListener("hashchange", () => {
  if (!shown) return;
  draw(shown);
  refresh();
  if (place().rank !== null || place().node !== null) document.getElementById("detail").scrollIntoView({ block: "nearest" });
});
run();
