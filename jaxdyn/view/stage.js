// ---- the robot in three.js: one matrix for each piece ----------------------------
function makeStage(data, box, changed) {
  const { up, floor, size } = data.scene;
  const vector = (a) => new THREE.Vector3(...a);
  const linear = (c) => new THREE.Color().setRGB(...c).convertSRGBToLinear();
  const renderer = new THREE.WebGLRenderer({ antialias: true, alpha: true });
  renderer.setPixelRatio(Math.min(window.devicePixelRatio || 1, 2));
  renderer.outputEncoding = THREE.sRGBEncoding;
  renderer.shadowMap.enabled = true;
  renderer.shadowMap.type = THREE.PCFSoftShadowMap;
  box.append(renderer.domElement);
  const scene = new THREE.Scene();
  const camera = new THREE.PerspectiveCamera(30, 1, 0.01 * size, 100 * size);
  camera.up = vector(up);

  // ---- pieces: instances of a shape, for each shape and opacity ------------------
  const arrow = [[0, 0], [0.025, 0], [0.025, 0.78], [0.07, 0.78], [0, 1]];
  const sides = data.bodies < 100 ? 28 : 10; // less round, the more there are
  const unit = {
    box: new THREE.BoxGeometry(2, 2, 2),
    ball: new THREE.SphereGeometry(1, sides, sides / 2),
    cylinder: new THREE.CylinderGeometry(1, 1, 2, sides).rotateX(Math.PI / 2),
    arrow: new THREE.LatheGeometry(arrow.map((a) => new THREE.Vector2(...a)), 16).rotateX(Math.PI / 2),
  };
  const bodies = Array.from({ length: data.bodies + 1 }, () => new THREE.Matrix4());
  const layers = {}, product = new THREE.Matrix4(), parts = [];

  function add(layer, shape, opacity, members, onTop) { // members: body, color, place
    unit[shape] ||= unpacked(data.looks.meshes[Number(shape)]);
    const mesh = new THREE.InstancedMesh(unit[shape], new THREE.MeshPhongMaterial({
      opacity, transparent: opacity < 1, depthWrite: opacity === 1, depthTest: !onTop,
      shininess: 35, specular: 0x1c1c1c }), members.length);
    members.forEach(({ color }, k) => mesh.setColorAt(k, linear(color)));
    mesh.frustumCulled = false;
    mesh.castShadow = mesh.receiveShadow = opacity === 1 && !onTop;
    mesh.renderOrder = onTop ? 1 : 0;
    if (!layers[layer]) scene.add(layers[layer] = new THREE.Group());
    layers[layer].add(mesh);
    parts.push({ mesh, members });
  }

  for (const name of ["visual", "skeleton"]) {
    const { shapes, bodies, places, palette, colors } = data.looks[name] || { shapes: [] };
    const kinds = new Map(), numbers = floats(places || "");
    shapes.forEach((shape, k) => {
      const color = palette[colors[k]], key = `${shape} ${color[3]}`;
      const place = new THREE.Matrix4().set(...numbers.slice(12 * k, 12 * k + 12), 0, 0, 0, 1);
      if (!kinds.has(key)) kinds.set(key, [shape, color[3], []]);
      kinds.get(key)[2].push({ body: bodies[k], color: color.slice(0, 3), place });
    });
    for (const kind of kinds.values()) add(name, ...kind);
  }

  const axes = [], e = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map(vector);
  for (let body = 0; body < data.bodies; body++) for (const k of [0, 1, 2]) axes.push({ body,
    color: e[k].toArray().map((x) => 0.1 + 0.75 * x), // red, green, blue along x, y, z
    place: new THREE.Matrix4().makeBasis(e[(k + 1) % 3], e[(k + 2) % 3], e[k])
      .scale(vector([1, 1, 1]).multiplyScalar(0.08 * size)) });
  add("frames", "arrow", 1, axes, true);

  const shades = [[0.78, 0.27, 0.24], [0.54, 0.39, 0.7], [0.16, 0.62, 0.69], [0.79, 0.64, 0.15]];
  const forces = data.forces.map((given, k) => { // the longest is a quarter of the size
    const values = floats(given.vectors), count = given.bodies.length;
    let largest = 0;
    for (let n = 0; n < values.length; n += 3)
      largest = Math.max(largest, Math.hypot(values[n], values[n + 1], values[n + 2]));
    const members = given.bodies.map((body, n) => (
      { body, at: vector(given.places[n]), color: shades[k % 4], place: new THREE.Matrix4() }));
    const layer = `force ${k}`, z = e[2], turn = new THREE.Quaternion();
    add(layer, "arrow", 1, members, true);
    return { layer, name: given.name, color: shades[k % 4], push(a, b, s) {
      members.forEach(({ body, at, place }, n) => { // in world axes, so undo the body's
        const [from, to] = [a, b].map((row) => new THREE.Vector3().fromArray(values, 3 * (row * count + n)));
        const length = (0.25 * size * from.lerp(to, s).length()) / (largest || 1);
        turn.setFromUnitVectors(z, from.normalize());
        place.compose(at.clone().applyMatrix4(bodies[body]), turn, vector([length, length, length]));
        place.premultiply(product.copy(bodies[body]).invert());
      });
    } };
  });

  // ---- surroundings ---------------------------------------------------------------
  const extremes = [], far = floats(data.scene.extremes);
  for (let k = 0; k < far.length; k += 3) extremes.push(new THREE.Vector3().fromArray(far, k));
  const ball = new THREE.Sphere().setFromPoints(extremes);
  const eye = vector(data.scene.eye).normalize();
  scene.add(new THREE.HemisphereLight(0xffffff, 0xb4b9c2, 0.62));
  const sun = new THREE.DirectionalLight(0xffffff, 0.5);
  const beside = new THREE.Vector3().crossVectors(vector(up), eye);
  sun.position.copy(ball.center).addScaledVector(vector(up), 3 * ball.radius)
    .addScaledVector(eye, 1.8 * ball.radius).addScaledVector(beside, -0.9 * ball.radius);
  sun.target.position.copy(ball.center);
  sun.castShadow = true;
  sun.shadow.mapSize.set(2048, 2048);
  sun.shadow.normalBias = 0.004 * ball.radius;
  const reach = 1.3 * ball.radius;
  Object.assign(sun.shadow.camera, { left: -reach, right: reach, bottom: -reach, top: reach,
                                     near: 0.1 * reach, far: 6 * reach });
  scene.add(sun, sun.target);

  if (floor) { // chequered, fades away, just below the robot
    const [across, deep] = floor.tiles.map((x) => 2 * x), pixels = document.createElement("canvas");
    const side = 1024, pen = pixels.getContext("2d");
    pixels.width = pixels.height = side;
    for (let x = 0; x < 2 * across; x++) for (let y = 0; y < 2 * deep; y++) {
      pen.fillStyle = (x + y) % 2 ? "#e6eaef" : "#d5dae2";
      const [w, h] = [side / (2 * across), side / (2 * deep)];
      pen.fillRect(x * w, y * h, w + 1, h + 1);
    }
    const fade = pen.createRadialGradient(side / 2, side / 2, 0.2 * side, side / 2, side / 2, 0.5 * side);
    fade.addColorStop(0, "#eef1f500");
    fade.addColorStop(1, "#eef1f5");
    pen.fillStyle = fade;
    pen.fillRect(0, 0, side, side);
    const map = new THREE.CanvasTexture(pixels);
    map.encoding = THREE.sRGBEncoding;
    map.anisotropy = 8;
    const shape = new THREE.PlaneGeometry(2 * across * floor.spacing, 2 * deep * floor.spacing);
    const tiles = new THREE.Mesh(shape, new THREE.MeshBasicMaterial({ map, toneMapped: false }));
    const shadow = new THREE.Mesh(shape, new THREE.ShadowMaterial({ opacity: 0.22 }));
    shadow.receiveShadow = true;
    [tiles, shadow].forEach((part, k) => {
      part.matrixAutoUpdate = false;
      part.matrix.makeBasis(vector(floor.along[0]), vector(floor.along[1]), vector(up));
      part.matrix.setPosition(vector(floor.center).addScaledVector(vector(up), (k - 2) * 1e-3 * size));
      scene.add(part);
    });
  }

  const traces = layers.traces = new THREE.Group();
  for (const { points, color } of data.scene.traces) {
    const way = [], values = floats(points), step = new THREE.Vector3();
    for (let k = 0; k < values.length; k += 3) {
      step.fromArray(values, k);
      if (!way.length || way[way.length - 1].distanceTo(step) > 2e-3 * size) way.push(step.clone());
    }
    if (way.length < 2) continue;
    const tube = new THREE.TubeGeometry(new THREE.CatmullRomCurve3(way), 2 * way.length, 2e-3 * size, 5);
    const paint = new THREE.Color(color).convertSRGBToLinear();
    traces.add(new THREE.Mesh(tube, new THREE.MeshBasicMaterial(
      { color: paint, transparent: true, opacity: 0.5, depthWrite: false })));
  }
  scene.add(traces);

  const strands = new THREE.LineSegments(new THREE.BufferGeometry(),
    new THREE.LineBasicMaterial({ color: 0x23272e })); // where a loop is open
  strands.frustumCulled = false;
  scene.add(strands);
  const knots = data.scene.ties.flat().map(({ body, place }) => ({ body, place: vector(place) }));

  // ---- the camera -----------------------------------------------------------------
  const home = { target: new THREE.Vector3(), offset: new THREE.Vector3() };
  const target = new THREE.Vector3();
  let isHome = true;

  function fit() { // so that every place of the motion is in sight
    camera.aspect = Math.max(box.clientWidth, 1) / Math.max(box.clientHeight, 1);
    camera.updateProjectionMatrix();
    const back = eye, right = new THREE.Vector3().crossVectors(vector(up), back).normalize();
    const above = new THREE.Vector3().crossVectors(back, right);
    const high = Math.tan((camera.fov * Math.PI) / 360), wide = high * camera.aspect;
    home.target.copy(ball.center);
    let distance = 0;
    for (let round = 0; round < 8; round++) {
      const place = (p, axis) => p.clone().sub(home.target).dot(axis);
      distance = Math.max(...extremes.map((p) => place(p, back) +
        Math.max(Math.abs(place(p, right)) / wide, Math.abs(place(p, above)) / high)));
      distance = Math.max(distance, 1e-9 * size);
      for (const axis of [right, above]) { // to the middle of what is seen
        const slopes = extremes.map((p) => place(p, axis) / (distance - place(p, back)));
        const middle = (Math.max(...slopes) + Math.min(...slopes)) / 2;
        home.target.addScaledVector(axis, 0.8 * middle * distance);
      }
    }
    home.offset.copy(back).multiplyScalar(1.07 * distance);
  }

  function goHome() {
    fit();
    target.copy(home.target);
    camera.position.copy(home.target).add(home.offset);
    isHome = true;
    changed();
  }

  function orbit(dx, dy) {
    const offset = camera.position.clone().sub(target), axis = vector(up);
    const right = new THREE.Vector3().crossVectors(axis, offset).normalize();
    const angle = offset.angleTo(axis);
    offset.applyAxisAngle(right, Math.min(Math.max(angle - dy, 0.02), 3.12) - angle);
    offset.applyAxisAngle(axis, -dx);
    camera.position.copy(target).add(offset);
  }

  function pan(dx, dy) {
    const reach = 2 * camera.position.distanceTo(target) * Math.tan((camera.fov * Math.PI) / 360);
    const step = new THREE.Vector3(-dx, dy, 0).multiplyScalar(reach / box.clientHeight);
    step.applyQuaternion(camera.quaternion);
    target.add(step);
    camera.position.add(step);
  }

  function zoom(factor) {
    camera.position.sub(target).multiplyScalar(factor).add(target);
  }

  const fingers = new Map();
  const canvas = renderer.domElement;
  canvas.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, event);
    canvas.setPointerCapture(event.pointerId);
  });
  for (const end of ["pointerup", "pointercancel"])
    canvas.addEventListener(end, (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
    const other = [...fingers.values()].find((x) => x.pointerId !== event.pointerId);
    if (other) { // two fingers: apart to zoom, together to pan
      const apart = (x) => Math.hypot(x.clientX - other.clientX, x.clientY - other.clientY);
      zoom(apart(before) / Math.max(apart(event), 1));
      pan(dx / 2, dy / 2);
    } else if (event.buttons & 2 || event.shiftKey) pan(dx, dy);
    else orbit((5 * dx) / box.clientHeight, (5 * dy) / box.clientHeight);
    fingers.set(event.pointerId, event);
    isHome = false;
    changed();
  });
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(1.001 ** Math.min(Math.max(event.deltaY, -300), 300));
    isHome = false;
    changed();
  }, { passive: false });

  new ResizeObserver(() => {
    renderer.setSize(box.clientWidth, box.clientHeight);
    fit();
    if (isHome) goHome();
    changed();
  }).observe(box);

  // ---- what others see -------------------------------------------------------------
  function show(name, visible) {
    layers[name].visible = visible;
    changed();
  }

  function draw(a, b, s) { // the matrices of the bodies are those between two rows
    forces.forEach(({ push }) => push(a, b, s));
    for (const { mesh, members } of parts) if (mesh.parent.visible) {
      members.forEach(({ body, place }, k) =>
        mesh.setMatrixAt(k, product.multiplyMatrices(bodies[body], place)));
      mesh.instanceMatrix.needsUpdate = true;
    }
    if (knots.length) strands.geometry.setFromPoints(
      knots.map(({ body, place }) => place.clone().applyMatrix4(bodies[body])));
    camera.lookAt(target);
    renderer.render(scene, camera);
  }

  return { bodies, layers, forces, show, draw, goHome, camera, extremes };
}

// A mesh of 16-bit numbers; edges sharper than 35 degrees stay sharp.
function unpacked({ low, step, vertices, faces, wide }) {
  const numbers = new Uint16Array(bytes(vertices));
  const index = wide ? new Uint32Array(bytes(faces)) : new Uint16Array(bytes(faces));
  const at = (v, k) => low[k] + step[k] * numbers[3 * v + k];
  const point = (v, out) => out.set(at(v, 0), at(v, 1), at(v, 2));
  const count = index.length / 3, normals = new Float32Array(3 * count);
  const [a, b, c] = [0, 1, 2].map(() => new THREE.Vector3());
  const around = Array.from({ length: numbers.length / 3 }, () => []);
  for (let f = 0; f < count; f++) {
    [a, b, c].forEach((out, k) => { point(index[3 * f + k], out); around[index[3 * f + k]].push(f); });
    b.sub(a).cross(c.sub(a)).toArray(normals, 3 * f); // as long as twice the area
  }
  const places = new Float32Array(9 * count), shading = new Float32Array(9 * count);
  for (let n = 0; n < 3 * count; n++) {
    const v = index[n], own = 3 * Math.floor(n / 3);
    b.fromArray(normals, own).normalize();
    c.set(0, 0, 0);
    for (const f of around[v]) {
      a.fromArray(normals, 3 * f);
      if (a.dot(b) >= 0.82 * a.length()) c.add(a);
    }
    c.normalize().toArray(shading, 3 * n);
    point(v, a).toArray(places, 3 * n);
  }
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(places, 3));
  geometry.setAttribute("normal", new THREE.BufferAttribute(shading, 3));
  return geometry;
}
