"use strict";
// Plays the motion in #data: poses of bodies move the vertices of one mesh.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);

  function bytes(text) {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  }
  const floats = (text) => new Float32Array(bytes(text));
  const integers = (text) => new Uint32Array(bytes(text));

  const times = floats(data.times);
  const frames = times.length;
  const duration = times[frames - 1];
  const positions = floats(data.poses.positions);
  const quaternions = floats(data.poses.quaternions);
  const bodies = positions.length / (3 * frames);

  // ---- poses between two frames ------------------------------------------------
  const R = new Float64Array(9 * (bodies + 1)); // the last body is the world
  const p = new Float64Array(3 * (bodies + 1));
  R.set([1, 0, 0, 0, 1, 0, 0, 0, 1], 9 * bodies);

  function frameBefore(t) {
    let low = 0, high = frames - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= t) low = middle; else high = middle;
    }
    return low;
  }

  function pose(t) {
    const a = frameBefore(t), b = Math.min(a + 1, frames - 1);
    const s = b > a ? Math.min(Math.max((t - times[a]) / (times[b] - times[a]), 0), 1) : 0;
    for (let n = 0; n < bodies; n++) {
      const pa = 3 * (a * bodies + n), pb = 3 * (b * bodies + n);
      for (let k = 0; k < 3; k++)
        p[3 * n + k] = (1 - s) * positions[pa + k] + s * positions[pb + k];
      const qa = 4 * (a * bodies + n), qb = 4 * (b * bodies + n);
      let dot = 0;
      for (let k = 0; k < 4; k++) dot += quaternions[qa + k] * quaternions[qb + k];
      const sb = dot < 0 ? -s : s; // q and -q are the same rotation
      const q = [0, 1, 2, 3].map(
        (k) => (1 - s) * quaternions[qa + k] + sb * quaternions[qb + k]);
      rotation(q, 9 * n);
    }
  }

  function rotation([x, y, z, w], at) {
    const c = 2 / (x * x + y * y + z * z + w * w);
    R[at] = 1 - c * (y * y + z * z);
    R[at + 1] = c * (x * y - z * w);
    R[at + 2] = c * (x * z + y * w);
    R[at + 3] = c * (x * y + z * w);
    R[at + 4] = 1 - c * (x * x + z * z);
    R[at + 5] = c * (y * z - x * w);
    R[at + 6] = c * (x * z - y * w);
    R[at + 7] = c * (y * z + x * w);
    R[at + 8] = 1 - c * (x * x + y * y);
  }

  // ---- the mesh ----------------------------------------------------------------
  const local = floats(data.scene.vertices);
  const owner = integers(data.scene.bodies);
  const count = owner.length;
  const { up, floor } = data.scene;
  const unlit = { ambient: 1, diffuse: 0, specular: 0, fresnel: 0 };

  function vertices() {
    const x = new Float32Array(count), y = new Float32Array(count);
    const z = new Float32Array(count);
    for (let v = 0; v < count; v++) {
      const r = 9 * owner[v], o = 3 * owner[v];
      const a = local[3 * v], b = local[3 * v + 1], c = local[3 * v + 2];
      x[v] = p[o] + R[r] * a + R[r + 1] * b + R[r + 2] * c;
      y[v] = p[o + 1] + R[r + 3] * a + R[r + 4] * b + R[r + 5] * c;
      z[v] = p[o + 2] + R[r + 6] * a + R[r + 7] * b + R[r + 8] * c;
    }
    return { x, y, z };
  }

  function shadow({ x, y, z }) { // straight down, just above the floor
    const height = dot(floor.center, up) + 0.02 * floor.spacing;
    const s = { x: x.slice(), y: y.slice(), z: z.slice() };
    for (let v = 0; v < count; v++) {
      const drop = up[0] * x[v] + up[1] * y[v] + up[2] * z[v] - height;
      s.x[v] -= drop * up[0];
      s.y[v] -= drop * up[1];
      s.z[v] -= drop * up[2];
    }
    return s;
  }

  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const sum = (a, s, b, t, c) => a.map((_, k) => a[k] + s * b[k] + t * c[k]);

  function meshes() {
    const shape = vertices();
    const { palette, faces, colors } = data.scene;
    const cells = { i: integers(faces.i), j: integers(faces.j), k: integers(faces.k) };
    const steps = palette.length;
    const common = { type: "mesh3d", hoverinfo: "skip", showscale: false, ...cells };
    const robot = {
      ...common, ...shape, flatshading: false,
      intensity: Float32Array.from(integers(colors), (c) => (c + 0.5) / steps),
      cmin: 0, cmax: 1,
      colorscale: palette.flatMap((c, k) => [[k / steps, c], [(k + 1) / steps, c]]),
      lighting: { ambient: 0.55, diffuse: 0.75, specular: 0.18, roughness: 0.6,
                  fresnel: 0.1 },
      lightposition: light(),
    };
    if (!floor) return [robot];
    return [robot, { ...common, ...shadow(shape), color: "#bcc2cc", lighting: unlit }];
  }

  function light() {
    const [low, high] = data.scene.bounds;
    const size = Math.hypot(...high.map((h, k) => h - low[k]));
    const from = sum(data.scene.eye, 1.2, up, 0, up);
    return Object.fromEntries("xyz".split("").map(
      (name, k) => [name, (low[k] + high[k]) / 2 + 100 * size * from[k]]));
  }

  function surroundings() {
    const lines = data.scene.traces.map((trace) => {
      const points = floats(trace.points);
      const part = (k) => points.filter((_, n) => n % 3 === k);
      return { type: "scatter3d", mode: "lines", x: part(0), y: part(1), z: part(2),
               name: trace.name, hoverinfo: "name", showlegend: false,
               line: { color: trace.color, width: 3 }, opacity: 0.55 };
    });
    return floor ? [tiles(), ...lines] : lines;
  }

  function tiles() { // a chequered floor; each tile has its own corners
    const { center, spacing } = floor;
    const [u, v] = floor.along, [across, deep] = floor.tiles;
    const t = { x: [], y: [], z: [], i: [], j: [], k: [], intensity: [] };
    for (let a = -across; a < across; a++) for (let b = -deep; b < deep; b++) {
      const n = t.x.length;
      for (const [c, d] of [[a, b], [a + 1, b], [a + 1, b + 1], [a, b + 1]]) {
        const corner = sum(center, c * spacing, u, d * spacing, v);
        t.x.push(corner[0]); t.y.push(corner[1]); t.z.push(corner[2]);
        t.intensity.push((a + b) & 1);
      }
      t.i.push(n, n); t.j.push(n + 1, n + 2); t.k.push(n + 2, n + 3);
    }
    return { type: "mesh3d", hoverinfo: "skip", showscale: false, lighting: unlit, ...t,
             colorscale: [[0, "#eef0f4"], [1, "#e1e5eb"]] };
  }

  function layout() {
    const [low, high] = data.scene.bounds;
    const size = Math.max(...high.map((h, k) => h - low[k]));
    const ratio = high.map((h, k) => Math.max(h - low[k], 0.02 * size) / size);
    const axis = (k) => {
      const middle = (low[k] + high[k]) / 2, half = (ratio[k] * size) / 2;
      // without ticks plotly has no text to lay out anew in each frame
      return { range: [middle - half, middle + half], visible: false, showgrid: false,
               zeroline: false, showspikes: false, showticklabels: false, ticks: "",
               title: { text: "" }, tickmode: "array", tickvals: [] };
    };
    const eye = data.scene.eye, far = 1.25 / Math.hypot(...eye);
    const vector = (a, s) => ({ x: s * a[0], y: s * a[1], z: s * a[2] });
    return {
      margin: { l: 0, r: 0, t: 0, b: 0 }, showlegend: false, paper_bgcolor: "#fff",
      scene: {
        xaxis: axis(0), yaxis: axis(1), zaxis: axis(2), hovermode: false,
        aspectmode: "manual",
        aspectratio: { x: ratio[0], y: ratio[1], z: ratio[2] },
        dragmode: "orbit",
        camera: { eye: vector(eye, far), up: vector(up, 1), center: vector(up, 0) },
      },
    };
  }

  // ---- the plots ---------------------------------------------------------------
  const charts = [];
  const dashes = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const shownTimes = Array.from(times, (t) => t + data.start);

  function addCard(plot) {
    const card = document.createElement("section");
    card.className = "plot card";
    card.innerHTML = "<h2></h2><div class='values'></div>" +
      "<div class='chart'><div></div><div class='cursor'></div></div>";
    card.querySelector("h2").textContent = plot.title;
    $("plots").append(card);
    const lines = plot.lines.map((line) => ({ ...line, values: floats(line.values) }));
    const largest = Math.max(...lines.map((line) => // of all: rounding errors read 0
      line.values.reduce((most, value) => Math.max(most, Math.abs(value)), 0)));
    lines.forEach((line) => { line.largest = largest; });
    const readings = lines.length > 12 ? [] : lines.map((line) => {
      const label = document.createElement("span"), value = document.createElement("i");
      label.style.color = line.color;
      label.append(`${line.name} `, value);
      card.querySelector(".values").append(label);
      return value;
    });
    const gd = card.querySelector(".chart > div");
    charts.push({ gd, lines, readings, cursor: card.querySelector(".cursor") });
  }

  function draw(chart) {
    const { gd, lines } = chart;
    const traces = lines.map((line) => ({
      type: "scatter", mode: "lines", x: shownTimes, y: line.values, name: line.name,
      line: { color: line.color, width: lines.length > 12 ? 1 : 1.8,
              dash: lines.length > 12 ? "solid" : dashes[line.part % dashes.length] },
      hovertemplate: "%{y:.4g}",
    }));
    const axis = { gridcolor: "#eceff3", zerolinecolor: "#d5dae1", fixedrange: false };
    const drawn = Plotly.newPlot(gd, traces, {
      margin: { l: 56, r: 12, t: 6, b: 30 }, showlegend: false, dragmode: "zoom",
      hovermode: lines.length > 12 ? "closest" : "x", font: { size: 11 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      xaxis: { ...axis, ticksuffix: ` ${data.timeUnit}` },
      yaxis: { ...axis, exponentformat: "power" },
    }, { displayModeBar: false, responsive: true });
    return drawn.then(() => {
      gd.on("plotly_click", (event) => { pause(); seek(event.points[0].x - data.start); });
      gd.on("plotly_relayout", () => follow(chart));
    });
  }

  function follow({ gd, lines, readings, cursor }) {
    const { xaxis, yaxis } = gd._fullLayout;
    const at = xaxis.d2p(now + data.start);
    cursor.style.display = at >= 0 && at <= xaxis._length ? "block" : "none";
    cursor.style.transform = `translate(${xaxis._offset + at - 1}px, ${yaxis._offset}px)`;
    cursor.style.height = `${yaxis._length}px`;
    const a = frameBefore(now), b = Math.min(a + 1, frames - 1);
    const s = b > a ? (now - times[a]) / (times[b] - times[a]) : 0;
    readings.forEach((reading, k) => {
      const { values, largest } = lines[k];
      const value = (1 - s) * values[a] + s * values[b];
      reading.textContent = number(Math.abs(value) < 1e-6 * largest ? 0 : value);
    });
  }

  function number(value) {
    const size = Math.abs(value);
    const text = size !== 0 && (size < 1e-3 || size >= 1e5)
      ? value.toExponential(2) : value.toFixed(3);
    return text.replace("-", "\u2212");
  }

  // ---- time --------------------------------------------------------------------
  let now = 0, playing = false, drawing = false, last = 0;
  const state = { time: 0, drawn: 0, playing: false, ready: false, duration };
  window.jaxdyn = state;

  async function show() { // one drawing at a time; the latest time wins
    $("time").value = duration > 0 ? (1000 * now) / duration : 0;
    const digits = Math.max(0, 3 - Math.floor(Math.log10(duration || 1)));
    const clock = (t) => t.toFixed(Math.min(digits, 12));
    $("clock").textContent =
      `${clock(now + data.start)} / ${clock(duration + data.start)} ${data.timeUnit}`;
    charts.forEach(follow);
    state.time = now;
    if (drawing) return;
    drawing = true;
    pose(now);
    const shapes = [vertices()];
    if (floor) shapes.push(shadow(shapes[0]));
    const change = Object.fromEntries(
      ["x", "y", "z"].map((name) => [name, shapes.map((shape) => shape[name])]));
    const shown = now;
    await Plotly.restyle("robot", change, shapes.map((_, k) => k));
    drawing = false;
    state.drawn += 1;
    if (shown !== now && !playing) show();
  }

  function seek(t) {
    now = Math.min(Math.max(t, 0), duration);
    show();
  }

  function play() {
    if (playing || duration === 0) return;
    if (now >= duration) now = 0;
    playing = state.playing = true;
    $("play").textContent = "pause";
    last = performance.now();
    requestAnimationFrame(tick);
  }

  function pause() {
    playing = state.playing = false;
    $("play").textContent = "play";
  }

  function tick(stamp) {
    if (!playing) return;
    // a page that was hidden for a while goes on where it was
    const passed = Math.min(Math.max(stamp - last, 0), 250) / 1000;
    last = stamp;
    let t = now + passed * Number($("speed").value);
    if (t >= duration && !$("loop").checked) { pause(); seek(duration); return; }
    if (t >= duration) t = t % duration;
    seek(t);
    requestAnimationFrame(tick);
  }

  function speeds() {
    // for motions of a few seconds, seconds; else so that they last some seconds
    const usual = duration === 0 || (duration >= 0.5 && duration <= 120);
    const base = usual ? 1 : 10 ** Math.round(Math.log10(duration / 5));
    for (const factor of [0.05, 0.1, 0.25, 0.5, 1, 2, 4]) {
      const speed = Number((factor * base).toPrecision(3));
      const option = new Option(`\u00d7 ${speed}`, speed, factor === 1, factor === 1);
      $("speed").add(option);
    }
  }

  $("play").addEventListener("click", () => (playing ? pause() : play()));
  $("time").addEventListener("input", () => {
    pause();
    seek((Number($("time").value) / 1000) * duration);
  });
  document.addEventListener("keydown", (event) => {
    if (event.code !== "Space" || event.target.tagName === "BUTTON") return;
    event.preventDefault();
    if (playing) pause(); else play();
  });
  $("reset").addEventListener("click", () => {
    Plotly.relayout("robot", { "scene.camera": layout().scene.camera });
  });

  Object.assign(state, { seek, play, pause });
  if (floor) $("grid").textContent = floor.label;
  if (!data.plots.length) $("plots").remove();
  speeds();
  data.plots.forEach(addCard); // all of them, so that each has its height
  pose(0);
  Promise.all([
    Plotly.newPlot("robot", [...meshes(), ...surroundings()], layout(),
                   { displayModeBar: false, responsive: true, scrollZoom: true,
                     plotGlPixelRatio: window.devicePixelRatio || 1 }),
    ...charts.map(draw),
  ]).then(() => { seek(0); state.ready = true; });
})();
