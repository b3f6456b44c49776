// ---- time: plays the motion in #data -----------------------------------------------
const $ = (id) => document.getElementById(id);
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
const floats = (text) => new Float32Array(bytes(text));

(() => {
  const data = JSON.parse($("data").textContent);
  const times = floats(data.times), frames = times.length, duration = times[frames - 1];
  const positions = floats(data.poses.positions), turns = floats(data.poses.quaternions);
  data.bodies = positions.length / (3 * frames);
  let now = 0, playing = false, waiting = false, last = 0;
  const state = { time: 0, drawn: 0, playing: false, ready: false, duration };
  window.jaxdyn = state;

  let stage = null;
  try {
    stage = makeStage(data, $("robot"), request);
  } catch (error) {
    $("grid").textContent = `the robot cannot be shown without WebGL: ${error.message}`;
  }
  const charts = data.plots.map((plot) => makePlot(plot, $("plots"), times, {
    start: data.start, unit: data.timeUnit, seek: (t) => { pause(); seek(t); } }));

  function rowsAt(t) { // the rows before and after a time, and how far it is between
    let low = 0, high = frames - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= t) low = middle; else high = middle;
    }
    const gap = times[high] - times[low];
    return [low, high, gap > 0 ? Math.min(Math.max((t - times[low]) / gap, 0), 1) : 0];
  }

  const one = new THREE.Vector3(1, 1, 1), p = new THREE.Vector3(), p2 = new THREE.Vector3();
  const q = new THREE.Quaternion(), q2 = new THREE.Quaternion();
  function pose(a, b, s) { // q and -q are the same rotation: slerp takes the shorter way
    for (let n = 0; n < data.bodies; n++) {
      const from = a * data.bodies + n, to = b * data.bodies + n;
      p.fromArray(positions, 3 * from).lerp(p2.fromArray(positions, 3 * to), s);
      q.fromArray(turns, 4 * from).slerp(q2.fromArray(turns, 4 * to), s);
      stage.bodies[n].compose(p, q, one);
    }
  }

  function request() { // one picture for all that happens before the screen's next one
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(draw);
  }

  function draw() {
    waiting = false;
    if (stage) {
      pose(...rowsAt(now));
      stage.draw(...rowsAt(now));
    }
    state.drawn += 1;
  }

  function seek(t) {
    now = state.time = Math.min(Math.max(t, 0), duration);
    charts.forEach((chart) => chart.follow(now, ...rowsAt(now)));
    $("time").value = duration > 0 ? (1000 * now) / duration : 0;
    const digits = Math.max(0, 3 - Math.floor(Math.log10(duration || 1)));
    const clock = (t) => (t + data.start).toFixed(Math.min(digits, 12));
    $("clock").textContent = `${clock(now)} / ${clock(duration)} ${data.timeUnit}`;
    request();
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

  function choices() { // what of the robot is seen
    const looks = ["visual", "skeleton"].filter((name) => stage.layers[name]);
    const choose = (chosen) => looks.forEach((name) => stage.show(name, name === chosen));
    looks.forEach((name) => $("look").add(new Option(name, name, false, name === data.look)));
    $("look").hidden = looks.length < 2;
    $("look").addEventListener("change", () => choose($("look").value));
    choose(looks.includes(data.look) ? data.look : looks[0]);
    const forces = stage.forces.map(({ layer, name, color }) => [layer, name, true, color]);
    for (const [layer, name, on, color] of
      [["traces", "traces", true], ["frames", "frames", false], ...forces]) {
      const label = document.createElement("label"), box = document.createElement("input");
      Object.assign(box, { type: "checkbox", checked: on, name: layer });
      box.addEventListener("change", () => stage.show(layer, box.checked));
      label.append(box, ` ${name}`);
      if (color) label.style.color = `rgb(${color.map((x) => Math.round(255 * x))})`;
      $("layers").append(label);
      stage.show(layer, on);
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
  $("reset").addEventListener("click", () => stage && stage.goHome());

  Object.assign(state, { seek, play, pause, stage });
  if (data.scene.floor && stage) $("grid").textContent = data.scene.floor.label;
  if (!data.plots.length) $("plots").remove();
  speeds();
  if (stage) choices();
  seek(0);
  state.ready = true;
})();
