// ---- plots: lines on a canvas, a cursor at the time, names that switch lines -------
function makePlot(plot, parent, times, { start, unit, seek }) {
  const card = document.createElement("section");
  card.className = "plot card";
  card.innerHTML = "<h2></h2><div class='values'></div>" +
    "<div class='chart'><canvas></canvas><div class='cursor'></div></div>";
  card.querySelector("h2").textContent = plot.title;
  parent.append(card);
  const chart = card.querySelector(".chart"), canvas = card.querySelector("canvas");
  const cursor = card.querySelector(".cursor"), pen = canvas.getContext("2d");
  const lines = plot.lines.map((line) => ({ ...line, values: floats(line.values), on: true }));
  const few = lines.length <= 12, duration = times[times.length - 1];
  const largest = Math.max(...lines.map(({ values }) => // of all: rounding errors read 0
    values.reduce((most, value) => Math.max(most, Math.abs(value)), 0)));
  const dashes = [[], [6, 4], [2, 3], [8, 3, 2, 3], [12, 4], [12, 3, 2, 3]];
  const edge = { left: 52, right: 20, top: 6, bottom: 22 };
  let range = [0, duration || 1], values = [0, 1], now = 0;

  for (const line of lines) { // a click switches a line, a double click shows it alone
    const label = document.createElement("button");
    line.reading = document.createElement("i");
    label.style.color = line.color;
    label.append(`${line.name} `, few ? line.reading : "");
    label.title = "click: on or off; double click: this one or all";
    label.addEventListener("click", () => { line.on = !line.on; draw(); });
    label.addEventListener("dblclick", () => {
      const alone = lines.some((other) => other !== line && other.on);
      lines.forEach((other) => { other.on = other === line || !alone; });
      draw();
    });
    line.label = label;
    card.querySelector(".values").append(label);
  }

  const x = (t) => edge.left + ((t - range[0]) / (range[1] - range[0])) * inner()[0];
  const y = (v) => edge.top + (1 - (v - values[0]) / (values[1] - values[0])) * inner()[1];
  const inner = () => [Math.max(chart.clientWidth - edge.left - edge.right, 1),
                       Math.max(chart.clientHeight - edge.top - edge.bottom, 1)];
  const timeAt = (event) => range[0] + (range[1] - range[0]) *
    (event.clientX - chart.getBoundingClientRect().left - edge.left) / inner()[0];

  function ticks([low, high], most) { // round numbers
    const rough = (high - low) / Math.max(most, 1), power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((k) => k * power >= 0.999 * rough);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-6); k * step <= high + 1e-6 * step; k++) found.push(k * step);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const far = Math.max(Math.abs(low), Math.abs(high));
    return found.map((at) => [at, (far >= 1e5 || far < 1e-3
      ? at.toExponential(1) : at.toFixed(Math.min(digits, 12))).replace("-", "\u2212")]);
  }

  function limits() { // of the lines that are on, with a margin
    let low = Infinity, high = -Infinity;
    for (const line of lines) if (line.on) for (const value of line.values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (low > high) [low, high] = [0, 1];
    const margin = 0.06 * (high - low) || 0.5 * Math.abs(high) || 1;
    return [low - margin, high + margin];
  }

  function draw() {
    const scale = window.devicePixelRatio || 1, [width, height] = inner();
    canvas.width = scale * chart.clientWidth;
    canvas.height = scale * chart.clientHeight;
    values = limits();
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, chart.clientWidth, chart.clientHeight);
    Object.assign(pen, { font: "11px system-ui, sans-serif", fillStyle: "#4d5560",
                         strokeStyle: "#e6e9ee", lineWidth: 1, lineJoin: "round" });
    const rule = (...p) => { pen.beginPath(); pen.moveTo(p[0], p[1]); pen.lineTo(p[2], p[3]); pen.stroke(); };
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const [at, text] of ticks(values, height / 26)) {
      rule(edge.left, y(at), edge.left + width, y(at));
      pen.fillText(text, edge.left - 6, y(at));
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const [at, text] of ticks([range[0] + start, range[1] + start], width / 80)) {
      rule(x(at - start), edge.top, x(at - start), edge.top + height);
      pen.fillText(`${text} ${unit}`, x(at - start), edge.top + height + 6);
    }
    pen.save();
    pen.beginPath();
    pen.rect(edge.left, edge.top - 2, width, height + 4);
    pen.clip();
    pen.lineWidth = few ? 1.8 : 1;
    for (const line of lines) {
      line.label.classList.toggle("off", !line.on);
      if (!line.on) continue;
      pen.strokeStyle = line.color;
      pen.setLineDash(few ? dashes[line.part % dashes.length] : []);
      pen.beginPath();
      line.values.forEach((value, k) => pen.lineTo(x(times[k]), y(value)));
      pen.stroke();
    }
    pen.restore();
    follow(now, 0, 0, 0);
  }

  function follow(t, a, b, s) { // puts the cursor at a time between the rows a and b
    now = t;
    const at = x(t);
    cursor.style.display = at >= edge.left - 1 && at <= edge.left + inner()[0] + 1 ? "block" : "none";
    cursor.style.transform = `translate(${at - 1}px, ${edge.top}px)`;
    cursor.style.height = `${inner()[1]}px`;
    if (few && b) for (const line of lines) {
      const value = (1 - s) * line.values[a] + s * line.values[b];
      line.reading.textContent = number(Math.abs(value) < 1e-6 * largest ? 0 : value);
    }
  }

  function number(value) {
    const size = Math.abs(value);
    const text = size !== 0 && (size < 1e-3 || size >= 1e5)
      ? value.toExponential(2) : value.toFixed(3);
    return text.replace("-", "\u2212");
  }

  chart.addEventListener("pointerdown", (event) => {
    chart.setPointerCapture(event.pointerId);
    seek(timeAt(event));
  });
  chart.addEventListener("pointermove", (event) => { if (event.buttons & 1) seek(timeAt(event)); });
  chart.addEventListener("wheel", (event) => { // zoom about the time under the pointer
    event.preventDefault();
    const at = timeAt(event), factor = 1.001 ** event.deltaY;
    const span = Math.min(Math.max(factor * (range[1] - range[0]), 1e-6 * duration), duration || 1);
    const low = Math.max(at - (at - range[0]) * (span / (range[1] - range[0])), 0);
    range = [Math.min(low, (duration || 1) - span), Math.min(low, (duration || 1) - span) + span];
    draw();
  }, { passive: false });
  new ResizeObserver(draw).observe(chart);
  return { follow, draw };
}
