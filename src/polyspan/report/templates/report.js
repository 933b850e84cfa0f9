"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);
  const unpack = (text, Kind) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Kind(bytes.buffer);
  };
  const n = data.n;
  const codes = unpack(data.codes, Int16Array);
  const certainty = unpack(data.certainty, Uint16Array);
  const second = data.second === null ? null : unpack(data.second, Int16Array);
  const axes = data.axes.map((text) => unpack(text, Uint16Array));
  const clusters = data.clusters;

  /* ---- light and dark ---- */
  const system = matchMedia("(prefers-color-scheme: dark)");
  let printing = false;
  const isDark = () => !printing && (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const store = (() => { try { return window.localStorage; } catch (error) { return null; } })();
  const themeButton = $("theme");
  function showTheme() {
    themeButton.setAttribute("aria-pressed", String(isDark()));
    themeButton.textContent = isDark() ? "Light" : "Dark";
    themeButton.setAttribute("aria-label", isDark() ? "Switch to light colors" : "Switch to dark colors");
    paintAll();
  }
  themeButton.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { store.setItem("polyspan-theme", root.dataset.theme); } catch (error) { /* not kept */ }
    showTheme();
  });
  try {
    const kept = store.getItem("polyspan-theme");
    if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  } catch (error) { /* not kept */ }
  system.addEventListener("change", showTheme);

  /* ---- the map ---- */
  const plot = $("plot"), base = $("points"), over = $("over"), tip = $("tip");
  const ink = base.getContext("2d"), top = over.getContext("2d");
  const hidden = new Set(), chosen = new Set();
  let paint = "cluster", across = 0, up = 1, hovered = -1, selected = -1;
  let zoom = 1, midX = 0.5, midY = 0.5;  // the part of the unit square that is shown
  let width = 0, height = 0, ratio = 1;
  const px = new Float32Array(n), py = new Float32Array(n);
  const CELL = 16;
  let columns = 0, rows = 0, first = new Int32Array(0);
  const next = new Int32Array(n);
  const order = Int32Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1, seed = 1; i > 0; i--) {  // shuffled, so that no cluster always lies on top
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    const j = (seed >>> 8) % (i + 1);
    const kept = order[i]; order[i] = order[j]; order[j] = kept;
  }

  function place() {  // pixels of every sample, and which samples lie in which cell of a grid
    const edge = 22;
    columns = Math.max(1, Math.ceil(width / CELL));
    rows = Math.max(1, Math.ceil(height / CELL));
    first = new Int32Array(columns * rows).fill(-1);
    const xs = axes[across], ys = axes[up];
    for (let i = 0; i < n; i++) {
      const x = edge + ((xs[i] / 65535 - midX) * zoom + 0.5) * (width - 2 * edge);
      const y = edge + ((midY - ys[i] / 65535) * zoom + 0.5) * (height - 2 * edge);
      px[i] = x; py[i] = y; next[i] = -1;
      if (x < 0 || y < 0 || x >= width || y >= height) continue;
      const cell = Math.floor(y / CELL) * columns + Math.floor(x / CELL);
      next[i] = first[cell]; first[cell] = i;
    }
  }
  const isShown = (i) => !hidden.has(codes[i]);
  const inPlot = (i) => px[i] > -9 && py[i] > -9 && px[i] < width + 9 && py[i] < height + 9;

  const RAMP = [[217, 95, 2], [180, 184, 191], [31, 111, 180]];  // uncertain to certain
  function rampColor(share) {
    const at = Math.min(Math.max(share, 0), 1) * 2, low = Math.min(Math.floor(at), 1);
    const mixed = RAMP[low].map((part, k) => Math.round(part + (RAMP[low + 1][k] - part) * (at - low)));
    return "rgb(" + mixed.join(",") + ")";
  }
  const rampColors = Array.from({ length: 33 }, (_, k) => rampColor(k / 32));
  let radius = 3;
  function stamp(color) {  // one dot, drawn once and copied for every sample
    const side = Math.ceil((2 * radius + 2) * ratio), dot = document.createElement("canvas");
    dot.width = dot.height = side;
    const pen = dot.getContext("2d");
    pen.scale(ratio, ratio);
    pen.beginPath();
    pen.arc(side / ratio / 2, side / ratio / 2, radius, 0, 7);
    pen.fillStyle = color;
    pen.fill();
    if (n <= 2000) {
      pen.lineWidth = 0.7;
      pen.strokeStyle = isDark() ? "rgba(18,23,29,.8)" : "rgba(255,255,255,.9)";
      pen.stroke();
    }
    return dot;
  }
  const UNKNOWN = "#b4b8bf";
  const column = () => data.known[Number(paint)];  // what the map is colored by, if it is known
  function shades() {  // the colors in use; the last one of a known column is for unknown values
    if (paint === "cluster") return clusters.map((one) => one.color);
    if (paint === "certainty") return rampColors;
    return [...(column().colors || rampColors), UNKNOWN];
  }
  function shadeOf(i) {
    if (paint === "cluster") return codes[i];
    if (paint === "certainty") return Math.round(certainty[i] / 10000 * 32);
    const one = column();
    if (one.codes) return one.codes[i] < 0 ? one.colors.length : one.codes[i];
    return one.shares[i] === null ? rampColors.length : Math.round(one.shares[i] * 32);
  }
  function showKey() {  // the classes, or the ends of the numbers, of a known column
    const key = $("paint-key"), one = column();
    key.textContent = "";
    key.hidden = !one;
    if (!one) return;
    const pairs = one.classes ? one.classes.map((name, k) => [name, one.colors[k]])
      : [[String(one.low), rampColors[0]], [String(one.high), rampColors[32]]];
    for (const [name, color] of [...pairs, ["unknown", UNKNOWN]]) {
      const item = document.createElement("li"), swatch = document.createElement("span"), word = document.createElement("bdi");
      swatch.className = "swatch";
      swatch.style.background = color;
      word.textContent = name;
      item.append(swatch, word);
      key.append(item);
    }
  }
  function drawPoints() {
    if (!width) return;
    radius = n <= 300 ? 4.5 : n <= 2000 ? 3.6 : n <= 8000 ? 2.6 : 1.9;
    radius *= Math.min(1.8, Math.sqrt(Math.sqrt(zoom)));
    const stamps = shades().map(stamp);
    const half = stamps[0].width / ratio / 2, side = stamps[0].width / ratio;
    const picked = chosen.size > 0;
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    ink.clearRect(0, 0, width, height);
    for (const front of picked ? [false, true] : [true]) {
      ink.globalAlpha = front ? (n > 8000 ? 0.8 : 0.9) : 0.12;
      for (let k = 0; k < n; k++) {
        const i = order[k];
        if (!isShown(i) || !inPlot(i) || (picked && chosen.has(codes[i]) !== front)) continue;
        ink.drawImage(stamps[shadeOf(i)], px[i] - half, py[i] - half, side, side);
      }
    }
    ink.globalAlpha = 1;
    drawNames();
  }
  function drawNames() {  // not everyone can tell the colors apart: names in the middle of clusters
    const xs = clusters.map(() => []), ys = clusters.map(() => []);
    for (let i = 0; i < n; i++) { xs[codes[i]].push(px[i]); ys[codes[i]].push(py[i]); }
    const middle = (list) => { list.sort((a, b) => a - b); return list[list.length >> 1]; };
    ink.font = "600 " + (clusters.length > 30 ? 11 : 13) + "px system-ui, sans-serif";
    ink.textAlign = "center";
    ink.textBaseline = "middle";
    ink.lineWidth = 3.5;
    ink.lineJoin = "round";
    ink.strokeStyle = isDark() ? "rgba(18,23,29,.85)" : "rgba(255,255,255,.9)";
    ink.fillStyle = isDark() ? "#fff" : "#10151b";
    const taken = [];
    const largest = clusters.map((_, k) => k).sort((a, b) => clusters[b].size - clusters[a].size);
    for (const k of largest) {
      if (hidden.has(k) || (chosen.size && !chosen.has(k))) continue;
      const x = middle(xs[k]), y = middle(ys[k]), one = clusters[k];
      const name = one.name.length > 14 ? one.name.slice(0, 13) + "\u2026" : one.name;
      const half = ink.measureText(name).width / 2 + 1;
      if (taken.some((box) => Math.abs(box[0] - x) < box[2] + half && Math.abs(box[1] - y) < 13)) continue;
      taken.push([x, y, half]);
      ink.strokeText(name, x, y);
      ink.fillText(name, x, y);
    }
  }
  function drawOver() {
    top.setTransform(ratio, 0, 0, ratio, 0, 0);
    top.clearRect(0, 0, width, height);
    const ring = (i, size, line) => {
      if (i < 0 || !inPlot(i)) return;
      top.beginPath();
      top.arc(px[i], py[i], radius + size, 0, 7);
      top.lineWidth = line + 2;
      top.strokeStyle = isDark() ? "#12171d" : "#ffffff";
      top.stroke();
      top.lineWidth = line;
      top.strokeStyle = isDark() ? "#ffffff" : "#10151b";
      top.stroke();
    };
    ring(selected, 6, 2);
    ring(hovered, 3, 1.5);
    drawMinis();
  }
  /* ---- a small map of every view ---- */
  const minis = (data.maps || []).map((one, k) => {
    const box = document.createElement("figure"), canvas = document.createElement("canvas"), name = document.createElement("figcaption");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", "Map of view " + one.name);
    name.textContent = one.name;
    box.append(canvas, name);
    const mini = { canvas, axes: one.axes.map((text) => unpack(text, Uint16Array)), key: "" };
    const at = (i, side) => [6 + mini.axes[0][i] / 65535 * (side - 12), 6 + (1 - mini.axes[1][i] / 65535) * (side - 12)];
    mini.at = at;
    canvas.addEventListener("click", (event) => {
      const side = canvas.clientWidth, box = canvas.getBoundingClientRect();
      let best = -1, least = 144;
      for (let i = 0; i < n; i++) {
        const [x, y] = at(i, side), dx = x - event.clientX + box.left, dy = y - event.clientY + box.top;
        if (isShown(i) && dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = i; }
      }
      select(best, true);
    });
    $("minis").append(box);
    return mini;
  });
  function drawMinis() {
    for (const mini of minis) {
      const canvas = mini.canvas, side = canvas.clientWidth;
      if (!side) continue;
      const key = [side, ratio, paint, isDark(), [...hidden], [...chosen], selected, hovered].join();
      if (key === mini.key) continue;
      mini.key = key;
      canvas.width = canvas.height = Math.round(side * ratio);
      const pen = canvas.getContext("2d"), colors = shades(), r = n <= 300 ? 2.6 : n <= 3000 ? 1.8 : 1.1;
      pen.scale(ratio, ratio);
      for (let k = 0; k < n; k++) {
        const i = order[k];
        if (!isShown(i)) continue;
        const [x, y] = mini.at(i, side);
        pen.globalAlpha = chosen.size && !chosen.has(codes[i]) ? 0.12 : 0.9;
        pen.fillStyle = colors[shadeOf(i)];
        pen.beginPath();
        pen.arc(x, y, r, 0, 7);
        pen.fill();
      }
      pen.globalAlpha = 1;
      pen.strokeStyle = isDark() ? "#ffffff" : "#10151b";
      pen.lineWidth = 1.6;
      for (const i of new Set([selected, hovered])) {
        if (i < 0) continue;
        pen.beginPath();
        pen.arc(...mini.at(i, side), r + 4, 0, 7);
        pen.stroke();
      }
    }
  }
  function paintAll() { if (width) { place(); drawPoints(); drawOver(); } }
  let waiting = false;
  function later() {  // several changes in one frame are drawn once
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; paintAll(); });
  }
  function resize() {
    const box = plot.getBoundingClientRect();
    width = Math.round(box.width); height = Math.round(box.height);
    ratio = Math.min(window.devicePixelRatio || 1, 3);
    for (const canvas of [base, over]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    paintAll();
  }

  function nearest(x, y, reach) {
    let best = -1, least = reach * reach;
    const c0 = Math.max(0, Math.floor((x - reach) / CELL)), c1 = Math.min(columns - 1, Math.floor((x + reach) / CELL));
    const r0 = Math.max(0, Math.floor((y - reach) / CELL)), r1 = Math.min(rows - 1, Math.floor((y + reach) / CELL));
    for (let r = r0; r <= r1; r++) {
      for (let c = c0; c <= c1; c++) {
        for (let i = first[r * columns + c]; i >= 0; i = next[i]) {
          if (!isShown(i)) continue;
          const dx = px[i] - x, dy = py[i] - y, d = dx * dx + dy * dy;
          if (d < least) { least = d; best = i; }
        }
      }
    }
    return best;
  }
  const sure = (i) => (certainty[i] / 10000).toFixed(3);
  function describe(i) {
    let text = "cluster " + clusters[codes[i]].name + ", certainty " + sure(i);
    if (second && second[i] >= 0) text += ", next cluster " + clusters[second[i]].name;
    return text;
  }
  function showTip(i) {
    if (i < 0) { tip.hidden = true; return; }
    tip.textContent = "";
    const name = document.createElement("b");
    name.textContent = data.ids[i];
    const more = document.createElement("span");
    more.textContent = describe(i);
    tip.append(name, more);
    tip.hidden = false;
    const w = tip.offsetWidth, h = tip.offsetHeight;
    const x = Math.min(Math.max(4, px[i] + 14 + w > width ? px[i] - w - 14 : px[i] + 14), Math.max(4, width - w - 4));
    const y = Math.min(Math.max(4, py[i] - h / 2), Math.max(4, height - h - 4));
    tip.style.transform = "translate(" + Math.round(x) + "px," + Math.round(y) + "px)";
  }
  function hover(i) {
    if (i === hovered) return;
    hovered = i;
    showTip(i);
    drawOver();
  }
  function select(i, move) {
    selected = i;
    if (i >= 0 && hidden.has(codes[i])) { hidden.delete(codes[i]); showLegend(); }
    const out = $("readout");
    out.textContent = "";
    if (i < 0) { out.textContent = "No sample selected."; paintAll(); return; }
    const name = document.createElement("strong");
    name.textContent = data.ids[i];
    out.append("Selected: ", name, ": " + describe(i) + ".");
    if (move && !(px[i] > 0 && py[i] > 0 && px[i] < width && py[i] < height)) {
      midX = axes[across][i] / 65535; midY = axes[up][i] / 65535;
    }
    paintAll();
    hovered = i;
    showTip(i);
  }

  let held = null;
  const spot = (event) => {
    const box = over.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  over.addEventListener("pointermove", (event) => {
    const [x, y] = spot(event);
    if (held && zoom > 1) {
      const dx = x - held.x, dy = y - held.y;
      if (held.moved || dx * dx + dy * dy > 16) {
        held.moved = true;
        midX = held.midX - dx / (width * zoom);
        midY = held.midY + dy / (height * zoom);
        hover(-1);
        later();
        return;
      }
    }
    hover(nearest(x, y, event.pointerType === "touch" ? 22 : 12));
  });
  over.addEventListener("pointerdown", (event) => {
    const [x, y] = spot(event);
    held = { x, y, midX, midY, moved: false };
    if (zoom > 1) over.setPointerCapture(event.pointerId);
  });
  over.addEventListener("pointerup", (event) => {
    const moved = held && held.moved;
    held = null;
    if (moved) return;
    const [x, y] = spot(event);
    select(nearest(x, y, event.pointerType === "touch" ? 22 : 12), false);
  });
  over.addEventListener("pointercancel", () => { held = null; });
  over.addEventListener("pointerleave", () => hover(-1));
  over.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;  // a plain wheel scrolls the page; a pinch arrives with ctrl
    event.preventDefault();
    const [x, y] = spot(event);
    zoomTo(zoom * Math.exp(-event.deltaY / 100), x, y);
  }, { passive: false });
  over.addEventListener("dblclick", (event) => { const [x, y] = spot(event); zoomTo(zoom * 2, x, y); });
  over.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      let i = selected < 0 ? (step > 0 ? -1 : n) : selected;
      for (let tries = 0; tries < n; tries++) {
        i = (i + step + n) % n;
        if (isShown(i)) { select(i, true); break; }
      }
    } else if (event.key === "Escape") { hover(-1); select(-1, false); showTip(-1); }
    else if (event.key === "+" || event.key === "=") zoomTo(zoom * 1.6);
    else if (event.key === "-") zoomTo(zoom / 1.6);
    else return;
    event.preventDefault();
  });
  function zoomTo(wanted, x = width / 2, y = height / 2) {
    const after = Math.min(Math.max(wanted, 1), 400);
    const fx = (x - 22) / (width - 44) - 0.5, fy = (y - 22) / (height - 44) - 0.5;
    midX += fx / zoom - fx / after;
    midY -= fy / zoom - fy / after;
    zoom = after;
    if (zoom === 1) midX = midY = 0.5;
    over.classList.toggle("zoomed", zoom > 1);
    hover(-1);
    later();
  }
  $("closer").addEventListener("click", () => zoomTo(zoom * 1.6));
  $("wider").addEventListener("click", () => zoomTo(zoom / 1.6));
  $("whole").addEventListener("click", () => zoomTo(1));
  $("paint").addEventListener("change", (event) => {
    paint = event.target.value;
    $("ramp").hidden = paint !== "certainty";
    $("legend-title").hidden = paint === "certainty";
    showKey();
    later();
  });
  $("across").addEventListener("change", (event) => { across = Number(event.target.value); hover(-1); later(); });
  $("up").addEventListener("change", (event) => { up = Number(event.target.value); hover(-1); later(); });

  /* ---- legend ---- */
  const items = clusters.map((one, k) => {
    const item = document.createElement("li");
    const pick = document.createElement("button"), hide = document.createElement("button");
    pick.type = hide.type = "button";
    pick.className = "pick";
    hide.className = "hide";
    const swatch = document.createElement("span"), name = document.createElement("bdi"), size = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = one.color;
    name.className = "name";
    name.textContent = one.name;
    size.className = "size";
    size.textContent = one.size.toLocaleString("en");
    pick.append(swatch, name, size);
    pick.title = "Highlight cluster " + one.name;
    pick.addEventListener("click", () => {
      if (!chosen.delete(k)) chosen.add(k);
      showLegend();
      later();
    });
    hide.addEventListener("click", () => {
      if (!hidden.delete(k)) hidden.add(k);
      hover(-1);
      showLegend();
      later();
    });
    item.append(pick, hide);
    return item;
  });
  $("legend").append(...items);
  function showLegend() {
    items.forEach((item, k) => {
      const [pick, hide] = item.children;
      item.classList.toggle("off", hidden.has(k));
      pick.setAttribute("aria-pressed", String(chosen.has(k)));
      hide.setAttribute("aria-pressed", String(hidden.has(k)));
      hide.textContent = hidden.has(k) ? "show" : "hide";
      hide.setAttribute("aria-label", (hidden.has(k) ? "Show" : "Hide") + " cluster " + clusters[k].name);
    });
  }
  $("all").addEventListener("click", () => { hidden.clear(); chosen.clear(); showLegend(); later(); });

  /* ---- search ---- */
  const search = $("search"), hits = $("hits");
  let found = [], at = -1, lower = null;
  function look() {
    const text = search.value.trim().toLowerCase();
    found = []; at = -1;
    hits.textContent = "";
    if (text) {
      lower = lower || data.ids.map((name) => name.toLowerCase());
      const exact = lower.indexOf(text);
      if (exact >= 0) found.push(exact);
      for (let i = 0; i < n && found.length < 8; i++) {
        if (i !== exact && lower[i].includes(text)) found.push(i);
      }
      for (const [k, i] of found.entries()) {
        const item = document.createElement("li");
        item.setAttribute("role", "option");
        item.id = "hit-" + k;
        item.textContent = data.ids[i].length > 120 ? data.ids[i].slice(0, 119) + "\u2026" : data.ids[i];
        item.addEventListener("pointerdown", (event) => { event.preventDefault(); take(i); });
        hits.append(item);
      }
      if (!found.length) {
        const item = document.createElement("li");
        item.className = "none";
        item.textContent = "No sample id contains this.";
        hits.append(item);
      } else { mark(0); }
    }
    hits.hidden = !text;
    search.setAttribute("aria-expanded", String(!hits.hidden));
  }
  function mark(k) {
    at = k;
    [...hits.children].forEach((item, j) => item.setAttribute("aria-selected", String(j === k)));
    search.setAttribute("aria-activedescendant", "hit-" + k);
  }
  function close() { hits.hidden = true; search.setAttribute("aria-expanded", "false"); search.removeAttribute("aria-activedescendant"); }
  function take(i) { search.value = data.ids[i]; close(); select(i, true); }
  search.addEventListener("input", look);
  search.addEventListener("focus", () => { if (search.value && found.length) { hits.hidden = false; } });
  search.addEventListener("blur", close);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && at >= 0 && !hits.hidden) take(found[at]);
    else if (event.key === "ArrowDown" && found.length) mark((at + 1) % found.length);
    else if (event.key === "ArrowUp" && found.length) mark((at - 1 + found.length) % found.length);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.sample) {
      select(Number(button.dataset.sample), true);
      $("map").scrollIntoView();
      over.focus({ preventScroll: true });
    } else if (button.dataset.copy) {
      copy(button, $(button.dataset.copy));
    } else if (button.dataset.map) {
      saveMap(button.dataset.map);
    } else if (button.dataset.csv) {
      const list = lists.get(button.dataset.csv);
      download(button.dataset.csv + ".csv", "text/csv", toCsv([list.heads, ...list.rows]));
    } else if (button.dataset.save) {
      save(button);
    } else if (button.dataset.page) {
      lists.get(button.closest(".long").dataset.long).turn(Number(button.dataset.page));
    } else if (button.closest(".long th")) {
      lists.get(button.closest(".long").dataset.long).sort(button.closest("th").cellIndex);
    } else if (button.closest("table.sortable th")) {
      sort(button.closest("th"));
    }
  });

  /* ---- taking figures and tables away ---- */
  let saved = null;  // the last file, for tests
  function download(name, kind, content) {
    const link = document.createElement("a");
    const blob = content instanceof Blob ? content : new Blob([content], { type: kind + ";charset=utf-8" });
    link.href = URL.createObjectURL(blob);
    link.download = "polyspan-" + name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    saved = { name: link.download, blob };
  }
  function toCsv(rows) {
    const field = (value) => {
      let text = value === null || value === undefined ? "" : String(value);
      if (data.safe && /^[=+@-]/.test(text) && isNaN(text)) text = "'" + text;
      return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
    };
    return rows.map((row) => row.map(field).join(",")).join("\n") + "\n";
  }
  function svgText(svg) {  // with the colors of the light scheme, so that it can stand alone
    const copied = svg.cloneNode(true), box = svg.viewBox.baseVal;
    copied.removeAttribute("style");
    copied.setAttribute("width", box.width);
    copied.setAttribute("height", box.height);
    return new XMLSerializer().serializeToString(copied).replace(/var\(--[a-z0-9-]+, (#[0-9a-f]{6})\)/g, "$1");
  }
  function savePng(name, text, wide, tall) {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas"), grow = Math.min(3, 8000 / Math.max(wide, tall));
      canvas.width = Math.round(wide * grow);
      canvas.height = Math.round(tall * grow);
      const pen = canvas.getContext("2d");
      pen.fillStyle = "#ffffff";
      pen.fillRect(0, 0, canvas.width, canvas.height);
      pen.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => download(name + ".png", "image/png", blob));
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  }
  function save(button) {
    const kind = button.dataset.save;
    if (kind === "CSV") {
      const region = button.parentElement.previousElementSibling;
      const words = (cells) => [...cells].map((cell) => cell.dataset.v !== undefined ? cell.dataset.v : cell.textContent.trim());
      const rows = [...region.querySelectorAll("tr")].map((row) => words(row.cells));
      download(region.getAttribute("aria-label").toLowerCase().replace(/[^a-z0-9]+/g, "-") + ".csv", "text/csv", toCsv(rows));
      return;
    }
    const figure = button.closest("figure"), svg = figure.querySelector("svg"), box = svg.viewBox.baseVal;
    if (kind === "SVG") download(figure.dataset.name + ".svg", "image/svg+xml", svgText(svg));
    else savePng(figure.dataset.name, svgText(svg), box.width, box.height);
  }
  function saveMap(kind) {
    const colors = shades(), space = "http" + "://www.w3.org/2000/svg", parts = [];
    for (let k = 0; k < n; k++) {
      const i = order[k];
      if (!isShown(i) || !inPlot(i)) continue;
      parts.push('<circle cx="' + px[i].toFixed(1) + '" cy="' + py[i].toFixed(1) + '" r="' + radius.toFixed(1) + '" fill="' + colors[shadeOf(i)] + '"/>');
    }
    const text = '<svg xmlns="' + space + '" viewBox="0 0 ' + width + " " + height + '" width="' + width + '" height="' + height + '">' + parts.join("") + "</svg>";
    if (kind === "SVG") download("map.svg", "image/svg+xml", text);
    else savePng("map", text, width, height);
  }

  /* ---- long tables: sorted, searched and paged here ---- */
  const PAGE = 25;
  const lists = new Map();
  for (const holder of document.querySelectorAll("[data-long]")) {
    const name = holder.dataset.long, known = data.lists[name];
    const columns = known.columns || [
      data.ids, Array.from(codes, (k) => clusters[k].name), Array.from(certainty, (x) => x / 10000),
      ...(second ? [Array.from(second, (k) => k < 0 ? null : clusters[k].name)] : []),
    ];
    const rows = columns[0].map((_, i) => columns.map((one) => one[i]));
    const head = document.createElement("tr"), body = holder.querySelector("tbody");
    for (const word of known.heads) {
      const cell = document.createElement("th"), button = document.createElement("button");
      cell.scope = "col";
      button.type = "button";
      button.textContent = word;
      cell.append(button);
      head.append(cell);
    }
    holder.querySelector("thead").append(head);
    const list = { heads: known.heads, rows, seen: rows, page: 0 };
    const shown = (value) => value === null ? "\u2013" : typeof value !== "number" ? value
      : Math.abs(value) >= 0.001 || value === 0 ? String(Number(value.toPrecision(3))) : value.toExponential(1);
    list.show = () => {
      const last = Math.max(0, Math.ceil(list.seen.length / PAGE) - 1);
      list.page = Math.min(Math.max(list.page, 0), last);
      const from = list.page * PAGE, part = list.seen.slice(from, from + PAGE);
      body.replaceChildren(...part.map((row) => {
        const line = document.createElement("tr");
        for (const value of row) {
          const cell = document.createElement("td");
          if (typeof value === "number") { cell.className = "n"; cell.textContent = shown(value); }
          else { const word = document.createElement("bdi"); word.textContent = shown(value); cell.append(word); }
          line.append(cell);
        }
        return line;
      }));
      holder.querySelector(".pager span").textContent = list.seen.length
        ? (from + 1) + " to " + (from + part.length) + " of " + list.seen.length.toLocaleString("en") : "Nothing found.";
      const [before, after] = holder.querySelectorAll("[data-page]");
      before.disabled = list.page === 0;
      after.disabled = list.page === last;
    };
    list.turn = (step) => { list.page += step; list.show(); };
    list.sort = (column) => {
      const cell = head.cells[column], falling = cell.getAttribute("aria-sort") === "ascending";
      for (const other of head.cells) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", falling ? "descending" : "ascending");
      list.seen = [...list.seen].sort((a, b) => {
        const x = a[column], y = b[column];
        if (x === null || y === null) return (x === null) - (y === null);  // unknown last
        const order = typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true });
        return falling ? -order : order;
      });
      list.page = 0;
      list.show();
    };
    holder.querySelector("input").addEventListener("input", (event) => {
      const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      list.seen = rows.filter((row) => words.every((word) => row.some((value) => typeof value === "string" && value.toLowerCase().includes(word))));
      for (const other of head.cells) other.removeAttribute("aria-sort");
      list.page = 0;
      list.show();
    });
    lists.set(name, list);
    list.show();
  }

  /* ---- copying and sorting ---- */
  function copy(button, source) {
    const done = (text) => {
      button.textContent = text;
      setTimeout(() => { button.textContent = "Copy"; }, 1600);
    };
    const byHand = () => {
      const range = document.createRange();
      range.selectNodeContents(source);
      const selection = getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      done(document.execCommand("copy") ? "Copied" : "Selected: press Ctrl+C");
    };
    if (navigator.clipboard && window.isSecureContext) {
      navigator.clipboard.writeText(source.textContent).then(() => done("Copied"), byHand);
    } else byHand();
  }
  function sort(head) {
    const table = head.closest("table"), body = table.tBodies[0];
    const column = head.cellIndex, rowsNow = [...body.rows];
    const falling = head.getAttribute("aria-sort") === "ascending";
    const value = (row) => row.cells[column].dataset.v;
    const numeric = rowsNow.every((row) => value(row) === undefined || (value(row) !== "" && isFinite(value(row))));
    rowsNow.sort((a, b) => {
      const x = value(a), y = value(b);
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);  // unknown last
      const order = numeric ? x - y : x.localeCompare(y, "en", { numeric: true });
      return falling ? -order : order;
    });
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
    body.append(...rowsNow);
  }

  /* ---- the affinity ---- */
  const matrix = $("matrix") && $("matrix").querySelector("image");
  if (matrix && data.between) {
    const ends = [];
    clusters.reduce((sum, one) => { ends.push((sum + one.size) / n); return sum + one.size; }, 0);
    const which = (share) => Math.min(Math.max(ends.findIndex((end) => share < end), 0), ends.length - 1);
    const out = $("matrix-out"), frames = $("matrix").querySelectorAll(".frame");
    const clear = () => frames.forEach((frame) => frame.classList.remove("on"));
    matrix.addEventListener("pointermove", (event) => {
      const box = matrix.getBoundingClientRect();
      const a = which((event.clientY - box.top) / box.height), b = which((event.clientX - box.left) / box.width);
      clear();
      for (const k of [a, b]) if (frames[k]) frames[k].classList.add("on");
      out.textContent = (a === b ? "Inside cluster " + clusters[a].name
        : "Between clusters " + clusters[a].name + " and " + clusters[b].name)
        + ": mean affinity " + data.between[a][b] + ".";
    });
    matrix.addEventListener("pointerleave", () => { clear(); out.textContent = "\u00a0"; });
  }

  /* ---- start ---- */
  showLegend();
  new ResizeObserver(resize).observe(plot);
  addEventListener("beforeprint", () => { printing = true; resize(); });
  addEventListener("afterprint", () => { printing = false; resize(); });
  resize();
  showTheme();
  window.polyspanReport = {  // for tests and for inspection
    where: (i) => [px[i], py[i]],
    saved: () => saved,
    state: () => ({ hovered, selected, zoom, hidden: [...hidden], chosen: [...chosen] }),
  };
})();
