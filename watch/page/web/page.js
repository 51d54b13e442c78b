// Shows /watch.json, once a second while the page is visible. Texts are set as text, never as HTML: names are chosen by others.
"use strict";

const EVERY_MS = 1000;
const TIMELINE_S = 12;
const LANE_PX = 22;
const HUES = [205, 160, 265, 45, 300, 95]; // of nodes: none is taken for red
const SVG = "http://www.w3.org/2000/svg";

let chosen = null; // job, by name and plan

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
    const choose = () => { chosen = j; draw(picture); };
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

function ranks(job) {
  if (!job || !job.ranks.length) return show("ranks", null);
  const state = (r) => (r.blocked ? `blocked ${Math.round(seconds(r.blocked))} s` : r.silent ? `silent ${Math.round(seconds(r.silent))} s` : "");
  show("ranks", table([
    ["rank", "", (r) => String(r.rank)],
    ["host", "text wide", (r) => r.host],
    ["step", "wide", (r) => (Number(r.step) >= 2 ** 32 ? `epoch ${Math.floor(Number(r.step) / 2 ** 32)}` : r.step)],
    ["time of a step", "bar", (r) => stack(r.idle, r.wait)],
    ["idle", "", (r) => percent(r.idle)],
    ["wait", "", (r) => percent(r.wait)],
    ["step p50/p99", "wide", (r) => span(r.step_p50, r.step_p99)],
    ["wait p50/p99", "wide", (r) => span(r.wait_p50, r.wait_p99)],
    ["ready", "wide", (r) => `${r.ready}/${r.window}`],
    ["", "text state-bad", state],
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
    ["node", "text", (n) => n.addr],
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

function draw(picture) {
  const job = picture.jobs.find((j) => chosen && same(j, chosen)) || picture.jobs[0];
  const hosts = [...new Set(picture.processes.map((p) => p.host))];
  document.getElementById("where").textContent = hosts.slice(0, 4).join(", ") + (hosts.length > 4 ? ` and ${hosts.length - 4} more` : "");
  document.title = job && known(job.idle) ? `${wasted(job).toFixed(1)} GPUs idle · Feedwater` : "Feedwater";
  glance(picture, job);
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
    draw(picture);
    live.className = "";
    live.textContent = `live ${new Date(picture.time).toLocaleTimeString()}`;
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

run();
