"use strict";
// Adds to a page that is complete without it: what is known of a call under the pointer or the arrow keys, axes that change their scale,
// sides and scopes that can be hidden, a filter of functions. Texts reach the page as text, never as markup.
(() => {
  const MAIN = { left: 68, right: 626, top: 30, bottom: 314 };
  const BELOW = { left: 68, right: 626, top: 24, bottom: 128 };
  const GLYPHS = ["h0", "m-3 0h6m-3-3v6", "m0-4l4 7h-8z", "m-3-3h6v6h-6z"];
  const REACH = 40; // of the pointer, in units of the view box
  const STEPS = {
    ns: [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]],
    bytes: [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
  };
  const root = document.documentElement;
  const clamped = (value, low, high) => Math.min(Math.max(value, low), high);

  // Quantities as perfdiff writes them.
  const significant = (value, digits) => {
    if (value === 0) return "0";
    if (Math.abs(value) >= 10 ** digits) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(digits)));
  };
  const quantity = (value, unit) => {
    const steps = STEPS[unit];
    if (unit === "times" && Math.abs(value) >= 1e6) return value.toExponential(1).replace("+", "");
    if (!steps) return significant(value, 4);
    const [size, name] = steps.find(([size]) => Math.abs(value) >= size * 0.9995) ?? steps.at(-1);
    return `${significant(value / size, 3)} ${name}`;
  };

  const made = (name, attributes = {}, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };
  const said = (name, text, className = "") => {
    const element = document.createElement(name);
    element.textContent = text;
    element.className = className;
    return element;
  };

  /** Return a function from values to places between two ends; NaN where a value has no place. */
  const scaled = (scale, logarithmic, start, end) => {
    const of = (value) => (logarithmic ? (value > 0 ? Math.log10(value) : NaN) : value);
    const low = of(scale.low), high = of(scale.high);
    return (value) => (value === null ? NaN : start + ((clamped(of(value), low, high) - low) / (high - low)) * (end - start));
  };

  class Drawing {
    constructor(figure) {
      this.alone = figure.dataset.one !== undefined;
      this.data = JSON.parse(figure.querySelector("script").textContent);
      this.canvas = figure.querySelector(".canvas");
      this.main = figure.querySelector("svg.main");
      this.below = figure.querySelector("svg.below");
      this.tip = figure.querySelector(".tip");
      this.hidden = new Set();
      this.rings = [this.main, this.below].filter(Boolean).map((svg) => svg.appendChild(made("circle", { class: "ring", r: 7, visibility: "hidden" })));
      this.order = [];
      this.current = -1;
      this.place();
    }

    /** Compute where every series stands, and which points can be told about. */
    place() {
      const { x, y, ratio, series } = this.data;
      const axis = (each, start, end) => scaled(each.log ? each.logarithmic : each.linear, each.log, start, end);
      const across = axis(x, MAIN.left, MAIN.right), up = axis(y, MAIN.bottom, MAIN.top);
      const off = ratio ? scaled(ratio, ratio.log, BELOW.bottom, BELOW.top) : null;
      const dotted = series.some((each) => !each.line);
      this.placed = series.map((each) => ({
        each,
        x: each.x.map(across),
        y: each.y.map(up),
        low: each.low?.map((low) => (Number.isNaN(up(low)) ? MAIN.bottom : up(low))),
        high: each.high?.map(up),
        off: off && each.ratio ? each.ratio.map(off) : null,
      }));
      this.order = this.placed
        .filter(({ each }) => each.line !== dotted && !this.hidden.has(each.side) && !this.hidden.has(each.scope))
        .flatMap(({ each, x, y, off }) => each.x.map((_, row) => ({ each, row, x: x[row], y: y[row], off: off ? off[row] : NaN })))
        .filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y))
        .sort((one, other) => one.x - other.x || one.y - other.y);
    }

    /** Draw anew what the axes and the hidden series change. */
    draw() {
      this.place();
      this.clear();
      const { x, y } = this.data;
      this.ticks(this.main, x, "x", MAIN, true);
      this.ticks(this.main, y, "y", MAIN, true);
      if (this.below) this.ticks(this.below, x, "x", BELOW, false);
      const sides = (svg) => [...svg.querySelectorAll("path.points, path.line")];
      const bands = [...this.main.querySelectorAll("path.band")];
      const shown = this.placed.filter(({ each }) => each.x.length);
      const paths = sides(this.main), rests = this.below ? sides(this.below) : [];
      for (const placed of shown) {
        const hide = this.hidden.has(placed.each.side) || this.hidden.has(placed.each.scope) ? "hidden" : "visible";
        const path = paths.shift();
        path.setAttribute("d", placed.each.line ? line(placed.x, placed.y) : dots(placed.x, placed.y, placed.each.scope));
        path.setAttribute("visibility", hide);
        if (placed.each.line) {
          const band = bands.shift();
          band.setAttribute("d", placed.low ? outline(placed) : "");
          band.setAttribute("visibility", hide);
        }
        if (placed.off && placed.each.ratio.some(Boolean)) {
          const rest = rests.shift();
          rest.setAttribute("d", dots(placed.x, placed.off, placed.each.scope));
          rest.setAttribute("visibility", hide);
        }
      }
    }

    ticks(svg, axis, name, frame, labelled) {
      const scale = axis.log ? axis.logarithmic : axis.linear;
      const at = name === "x" ? scaled(scale, axis.log, frame.left, frame.right) : scaled(scale, axis.log, frame.bottom, frame.top);
      const parts = scale.ticks.flatMap(([value, label]) => {
        const place = at(value);
        if (name === "y") {
          return [made("path", { d: `M${frame.left} ${place}H${frame.right}` }), made("text", { x: frame.left - 8, y: place + 4 }, label)];
        }
        const tick = made("path", { d: `M${place} ${frame.bottom}v5` });
        return labelled ? [tick, made("text", { x: place, y: frame.bottom + 19 }, label)] : [tick];
      });
      svg.querySelector(`.ticks.${name}`).replaceChildren(...parts);
      if (labelled) svg.querySelector(`.name.${name}`).textContent = axis.name + (axis.log ? " (log)" : "");
    }

    /** Tell of the point nearest to a place of the view box of one of the two pictures. */
    near(svg, x, y) {
      const below = svg === this.below;
      let best = -1, least = REACH;
      this.order.forEach((point, index) => {
        const far = Math.hypot(point.x - x, (below ? point.off : point.y) - y);
        if (far < least) [best, least] = [index, far];
      });
      if (best >= 0) this.tell(best);
      else this.clear();
    }

    tell(index) {
      if (index === this.current) return;
      const { each, row, x, y, off } = this.order[index];
      this.current = index;
      const [main, below] = this.rings;
      ring(main, x, y, each.side);
      if (below) ring(below, x, off, each.side);
      const text = (coded) => (coded ? coded[0][coded[1] ? coded[1][row] : row] : "");
      const list = document.createElement("dl");
      const add = (name, value) => value && list.append(said("dt", name), said("dd", value));
      add(this.data.y.label.split(",")[0], quantity(each.y[row], this.data.y.unit));
      add(this.data.x.label, quantity(each.x[row], this.data.x.unit));
      for (const [name, values] of Object.entries(each.inputs ?? {})) add(name, text(values));
      if (each.ratio?.[row]) add("measured ÷ fitted", `×${significant(each.ratio[row], 3)}`);
      const scope = this.data.scopes[each.scope];
      const title = [this.alone ? "" : each.side, text(each.point), this.data.scopes.length > 1 ? scope : ""].filter(Boolean).join(", ");
      this.tip.replaceChildren(said("strong", title, each.side), list);
      this.tip.hidden = false;
      const box = this.main.getBoundingClientRect(), scale = box.width / 640;
      const left = x * scale < box.width / 2 ? x * scale + 14 : x * scale - this.tip.offsetWidth - 14;
      this.tip.style.left = `${clamped(left, 0, Math.max(box.width - this.tip.offsetWidth, 0))}px`;
      this.tip.style.top = `${Math.max(y * scale - this.tip.offsetHeight / 2, 0)}px`;
    }

    clear() {
      this.current = -1;
      this.tip.hidden = true;
      for (const each of this.rings) each.setAttribute("visibility", "hidden");
    }

    step(key) {
      const last = this.order.length - 1;
      const next = { ArrowRight: this.current + 1, ArrowLeft: this.current < 0 ? last : this.current - 1, Home: 0, End: last }[key];
      if (next === undefined || last < 0) return false;
      this.tell(clamped(next, 0, last));
      return true;
    }
  }

  const line = (x, y) => {
    const places = x.map((_, row) => [x[row], y[row]]).filter((place) => place.every(Number.isFinite));
    return places.length ? "M" + places.map(([a, b]) => `${a.toFixed(1)} ${b.toFixed(1)}`).join("L") : "";
  };
  const dots = (x, y, scope) =>
    x.map((_, row) => (Number.isFinite(x[row]) && Number.isFinite(y[row]) ? `M${Math.round(x[row])} ${Math.round(y[row])}${GLYPHS[scope % 4]}` : "")).join("");
  const outline = ({ x, low, high }) => {
    const rows = x.map((_, row) => row).filter((row) => Number.isFinite(x[row]) && Number.isFinite(high[row]));
    const back = [...rows].reverse();
    const path = line([...rows, ...back].map((row) => x[row]), [...rows.map((row) => high[row]), ...back.map((row) => low[row])]);
    return path && path + "Z";
  };
  const ring = (circle, x, y, side) => {
    circle.setAttribute("class", `ring ${side}`);
    circle.setAttribute("visibility", Number.isFinite(y) ? "visible" : "hidden");
    if (Number.isFinite(y)) for (const [name, value] of [["cx", x], ["cy", y]]) circle.setAttribute(name, value);
  };

  const drawings = new WeakMap();
  const drawing = (figure) => {
    if (!drawings.has(figure)) drawings.set(figure, new Drawing(figure));
    return drawings.get(figure);
  };
  for (const figure of document.querySelectorAll("figure.plot")) {
    const canvas = figure.querySelector(".canvas");
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-label", "What was measured; the arrow keys go from one point to the next");
    const hover = (event) => {
      const svg = event.target.closest("svg");
      if (!svg) return;
      const box = svg.getBoundingClientRect(), scale = 640 / box.width;
      drawing(figure).near(svg, (event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
    };
    canvas.addEventListener("pointermove", hover);
    canvas.addEventListener("pointerdown", hover);
    canvas.addEventListener("pointerleave", () => drawing(figure).clear());
    canvas.addEventListener("blur", () => drawing(figure).clear());
    canvas.addEventListener("keydown", (event) => {
      if (event.key === "Escape") drawing(figure).clear();
      else if (drawing(figure).step(event.key)) event.preventDefault();
    });
    for (const key of figure.querySelectorAll("button.key")) {
      key.disabled = false;
      key.addEventListener("click", () => {
        const { hidden } = drawing(figure);
        const name = key.dataset.side ?? Number(key.dataset.scope);
        if (!hidden.delete(name)) hidden.add(name);
        key.setAttribute("aria-pressed", String(!hidden.has(name)));
        drawing(figure).draw();
      });
    }
    for (const button of figure.querySelectorAll("[data-axis]")) {
      button.addEventListener("click", () => {
        const axis = drawing(figure).data[button.dataset.axis];
        axis.log = !axis.log;
        button.setAttribute("aria-pressed", String(axis.log));
        drawing(figure).draw();
      });
    }
  }

  /** Frames within frames, each as wide as its share of the frame above. */
  class FlameGraph {
    constructor(section) {
      this.data = JSON.parse(section.querySelector("script").textContent);
      this.canvas = section.querySelector(".flames");
      this.tip = section.querySelector(".tip");
      this.chosen = section.querySelector(".chosen");
      this.frames = [...section.querySelectorAll("svg.frame")];
      this.row = this.data.shown;
      this.by = "both";
      this.zoomed = this.current = null;
      for (const title of section.querySelectorAll("title")) title.remove(); // the tip tells more
    }

    /** Return values each with those of all frames within its frame. */
    added(values) {
      const sums = [...values], { above } = this.data;
      for (let index = sums.length - 1; index >= 0; index--) if (above[index] !== null) sums[above[index]] += sums[index];
      return sums;
    }

    /** Return what frames at the starts of threads have in all. */
    whole(values) {
      return values.reduce((sum, value, index) => sum + (this.data.above[index] === null ? value : 0), 0);
    }

    draw() {
      const { above, frame, clear, own, names, strongest } = this.data;
      const [base, head] = own[this.row];
      this.sides = [this.added(base), this.added(head)];
      this.wholes = this.sides.map((sums) => this.whole(sums));
      const wide = this.added({ base, head, both: base.map((value, index) => Math.max(value, head[index])) }[this.by]);
      const path = new Set();
      for (let index = this.zoomed; index !== null; index = above[index]) path.add(index);
      const all = this.whole(wide), next = new Map(), within = [];
      this.pixels = [];
      this.frames.forEach((element, index) => {
        const over = above[index];
        within[index] = this.zoomed === null || (over !== null && (over === this.zoomed || within[over]));
        const whole = over === null ? all : wide[over];
        const share = path.has(index) ? 1 : within[index] && whole > 0 ? wide[index] / whole : 0;
        const start = path.has(index) ? 0 : next.get(over) ?? 0;
        next.set(over, start + share);
        this.pixels[index] = share * (over === null ? this.canvas.clientWidth : this.pixels[over]);
        element.setAttribute("x", `${100 * start}%`);
        element.setAttribute("width", `${100 * share}%`);
        element.setAttribute("display", this.pixels[index] < 0.5 ? "none" : "inline");
        const [box, ...bars] = element.querySelectorAll(":scope > rect");
        bars.forEach((bar, side) => bar.setAttribute("width", `${clamped((100 * this.sides[side][index]) / (wide[index] || 1), 0, 100)}%`));
        const more = head[index] - base[index], known = clear[frame[index]];
        const told = known && known[this.row] && more !== 0;
        box.setAttribute("class", !known ? "unknown" : !told ? "alike" : more > 0 ? "more" : "less");
        box.setAttribute("fill-opacity", told ? strongest * Math.sqrt(Math.abs(more) / Math.max(...this.wholes)) : 1);
        const text = element.querySelector(":scope > text");
        text.textContent = (told ? (more > 0 ? "▲ " : "▼ ") : "") + names[frame[index]];
        text.setAttribute("display", this.pixels[index] < 24 ? "none" : "inline");
      });
      this.cut();
    }

    /** Shorten names that do not fit, all measured before any is changed, as each measure after a change takes a layout. */
    cut() {
      const texts = this.frames.map((element) => element.querySelector(":scope > text"));
      const lengths = texts.map((text) => (text.getAttribute("display") === "none" ? 0 : text.getComputedTextLength()));
      texts.forEach((text, index) => {
        const room = this.pixels[index] - 8;
        if (lengths[index] === 0 || lengths[index] <= room) return;
        text.textContent = `${text.textContent.slice(0, Math.max(Math.floor((text.textContent.length * room) / lengths[index]) - 1, 0))}…`;
      });
    }

    /** Return what is known of a frame, as elements. */
    said(index) {
      const { names, places, quantities, own, frame } = this.data, { unit } = quantities[this.row];
      const list = document.createElement("dl");
      const add = (name, [base, head], share = "") => {
        const more = head - base, sign = more > 0 ? "+" : "−";
        const part = document.createElement("div");
        const differs = more ? ` (${sign}${quantity(Math.abs(more), unit)})` : "";
        part.append(said("dt", `${name} `), said("dd", `${quantity(base, unit)} → ${quantity(head, unit)}${differs}${share}`));
        list.append(part);
      };
      const both = this.sides.map((sums) => sums[index]);
      const shares = both.map((value, side) => `${significant((100 * value) / (this.wholes[side] || 1), 3)} %`);
      add("with callees", both, `, ${shares.join(" → ")} of all`);
      add("itself", own[this.row].map((values) => values[index]));
      return [said("strong", names[frame[index]]), said("span", places[frame[index]], "place"), list];
    }

    /** Make a frame the one that keys start from, and tell of it with links to its function. */
    choose(index) {
      for (const element of this.canvas.querySelectorAll(".current")) element.classList.remove("current");
      this.current = index;
      this.frames[index].classList.add("current");
      const { targets, lines, frame } = this.data, target = targets[frame[index]];
      const link = (name, text) => Object.assign(said("a", text), { href: `#${name}` });
      const links = target ? [link(target, "in detail"), ...(lines[frame[index]] ? [link(`${target}-lines`, "its lines")] : [])] : [];
      this.chosen.replaceChildren(...this.said(index), ...links);
    }

    zoom(index) {
      this.zoomed = index;
      this.draw();
    }

    hover(event) {
      const index = this.frames.indexOf(event.target.closest?.("svg.frame"));
      this.tip.hidden = index < 0;
      if (index < 0) return;
      this.tip.replaceChildren(...this.said(index));
      const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left;
      const left = x < box.width / 2 ? x + 14 : x - this.tip.offsetWidth - 14;
      this.tip.style.left = `${clamped(left, 0, Math.max(box.width - this.tip.offsetWidth, 0))}px`;
      this.tip.style.top = `${event.clientY - box.top + 18}px`;
    }

    /** Go to another frame that is shown; return whether the key does something here. */
    step(key) {
      const { above } = this.data, at = this.current;
      const beside = this.frames.map((_, index) => index).filter((index) => this.pixels[index] >= 0.5 && above[index] === (at === null ? null : above[at]));
      const place = beside.indexOf(at);
      const moves = {
        ArrowRight: () => beside[place + 1],
        ArrowLeft: () => beside[place - 1],
        ArrowDown: () => (at === null ? beside[0] : above.findIndex((over, index) => over === at && this.pixels[index] >= 0.5)),
        ArrowUp: () => above[at],
        Home: () => this.frames.findIndex((_, index) => this.pixels[index] >= 0.5),
      };
      if (key === "Enter" && at !== null) this.zoom(at);
      else if (key === "Escape") this.zoom(null);
      else if (moves[key]) {
        const to = moves[key]();
        if (to >= 0) this.choose(to);
      } else return false;
      return true;
    }

    /** Mark the frames whose function or file has a text, and return what they are of both sides, those within each other once. */
    find(text) {
      const { names, places, frame, above } = this.data, inside = [];
      this.canvas.classList.toggle("searched", Boolean(text));
      const sums = [0, 0];
      let count = 0;
      this.frames.forEach((element, index) => {
        const hit = Boolean(text) && `${names[frame[index]]} ${places[frame[index]]}`.toLowerCase().includes(text);
        const over = above[index] !== null && inside[above[index]];
        element.classList.toggle("hit", hit);
        inside[index] = hit || over;
        count += hit;
        if (hit && !over) this.sides.forEach((values, side) => (sums[side] += values[index]));
      });
      const shares = sums.map((sum, side) => `${significant((100 * sum) / (this.wholes[side] || 1), 3)} %`);
      return text ? `${count} of ${this.frames.length} frames, ${shares.join(" → ")} of all` : "";
    }
  }

  const flames = document.getElementById("flame");
  if (flames) {
    const graph = new FlameGraph(flames), find = document.getElementById("find");
    const search = () => (flames.querySelector("output[for=find]").textContent = graph.find(find.value.trim().toLowerCase()));
    const press = (name, value) => {
      for (const button of flames.querySelectorAll(`[data-${name}]`)) button.setAttribute("aria-pressed", String(button.dataset[name] === value));
      graph.draw();
      search();
      if (graph.current !== null) graph.choose(graph.current);
    };
    for (const button of flames.querySelectorAll("[data-by]")) button.addEventListener("click", () => press("by", (graph.by = button.dataset.by)));
    for (const button of flames.querySelectorAll("[data-quantity]")) {
      button.addEventListener("click", () => {
        graph.row = Number(button.dataset.quantity);
        press("quantity", button.dataset.quantity);
      });
    }
    find.addEventListener("input", search);
    graph.canvas.tabIndex = 0;
    graph.canvas.setAttribute("role", "application");
    graph.canvas.setAttribute("aria-label", "Flame graph; the arrow keys go from one frame to the next, Enter widens one, Escape goes back");
    graph.canvas.addEventListener("pointermove", (event) => graph.hover(event));
    graph.canvas.addEventListener("pointerleave", () => (graph.tip.hidden = true));
    graph.canvas.addEventListener("click", (event) => {
      const index = graph.frames.indexOf(event.target.closest("svg.frame"));
      if (index < 0) return;
      graph.choose(index);
      graph.zoom(index === graph.zoomed ? null : index);
    });
    graph.canvas.addEventListener("keydown", (event) => {
      if (graph.step(event.key)) event.preventDefault();
    });
    new ResizeObserver(() => graph.draw()).observe(graph.canvas);
    graph.draw();
  }

  for (const button of document.querySelectorAll("[data-open]")) {
    button.setAttribute("aria-pressed", "false");
    const details = document.querySelectorAll(`${button.dataset.open} details`);
    const before = new Map([...details].map((each) => [each, each.open]));
    button.hidden = !details.length;
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-pressed") === "false";
      for (const each of details) each.open = open || before.get(each);
      button.setAttribute("aria-pressed", String(open));
    });
  }

  const filter = document.getElementById("filter");
  filter?.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    const rows = [...document.querySelectorAll(".overview tbody tr")];
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
      const article = document.getElementById(row.dataset.section);
      if (article) article.hidden = row.hidden;
    }
    const left = rows.filter((row) => !row.hidden).length;
    document.querySelector("output[for=filter]").textContent = wanted ? `${left} of ${rows.length}` : "";
  });

  // A link to a function that is folded away opens it; one to its lines does by itself.
  const reveal = () => {
    const details = document.getElementById(location.hash.slice(1))?.querySelector(":scope > details");
    if (details) details.open = true;
  };
  addEventListener("hashchange", reveal);
  reveal();

  // What scrolls must be reached by keys. Asked only of what is or comes near, as the answer takes a layout.
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting && (target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight)) target.tabIndex = 0;
    }
  }, { rootMargin: "1000px" });
  for (const box of document.querySelectorAll(".scroll, pre")) seen.observe(box);
  root.classList.add("live");
})();
