// Adds to a page of a history, which is complete without it, a drawing of the function that is chosen, and a filter.
(() => {
  const table = document.querySelector(".histories"), rows = [...table.tBodies[0].rows];
  if (!rows.length) return;
  const revisions = JSON.parse(document.getElementById("revisions").textContent);
  const svg = document.querySelector(".drawn svg"), title = document.getElementById("drawn"), says = document.querySelector(".drawn output");
  const LEFT = 84, RIGHT = 16, TOP = 16, BOTTOM = 28, HEIGHT = 300;
  let series, cursor; // what is drawn, and the revision that is told of it

  const STEPS = { ns: [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]], bytes: [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]] };
  /** A value in words, such as `3.21 ms`. */
  const told = (value, unit) => {
    const [factor, name] = (STEPS[unit] ?? [[1, ""]]).find(([least]) => value >= least) ?? (STEPS[unit] ?? [[1, ""]]).at(-1);
    return `${Number((value / factor).toPrecision(3)).toLocaleString("en")} ${name}`.trim();
  };
  const element = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  const across = (place) => LEFT + (place / Math.max(revisions.length - 1, 1)) * (svg.clientWidth - LEFT - RIGHT);
  const upwards = (value, highest) => HEIGHT - BOTTOM - (value / highest) * (HEIGHT - TOP - BOTTOM);
  const highestOf = (values) => values.reduce((most, value) => (value > most ? value : most), 0) || 1;

  /** The path of all values; where several share a pixel, from the least to the most of them. A revision without a value is a gap. */
  const path = (values, highest) => {
    const parts = [];
    let pen = "M";
    for (let place = 0; place < values.length; ) {
      const x = Math.round(across(place));
      let least = Infinity, most = -Infinity;
      for (; place < values.length && Math.round(across(place)) === x; place++) {
        if (Number.isNaN(values[place])) continue;
        least = Math.min(least, values[place]);
        most = Math.max(most, values[place]);
      }
      if (most < least) { pen = "M"; continue; }
      parts.push(`${pen}${x} ${upwards(least, highest).toFixed(1)}${most > least ? `V${upwards(most, highest).toFixed(1)}` : ""}`);
      pen = "L";
    }
    return parts.join("");
  };

  const draw = () => {
    const highest = highestOf(series.values), parts = [];
    for (const share of [0, 0.5, 1]) {
      const y = upwards(share * highest, highest);
      parts.push(element("path", { class: "grid", d: `M${LEFT} ${y}H${svg.clientWidth - RIGHT}` }));
      parts.push(element("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, told(share * highest, series.unit)));
    }
    for (const [place, anchor] of [[0, "start"], [revisions.length - 1, "end"]])
      parts.push(element("text", { x: across(place), y: HEIGHT - 8, "text-anchor": anchor }, revisions[place][0]));
    parts.push(element("path", { class: "cost", d: path(series.values, highest) }));
    for (const [place, change, rise] of series.changes) {
      const mark = element("circle", { class: rise ? "rise" : "fall", cx: across(place), cy: upwards(series.values[place], highest), r: 5 });
      mark.append(element("title", {}, `${revisions[place][0]}: ${change}`));
      parts.push(mark);
    }
    if (cursor !== undefined) parts.push(element("path", { class: "cursor", d: `M${across(cursor)} ${TOP}V${HEIGHT - BOTTOM}` }));
    svg.replaceChildren(...parts);
  };

  const point = (place) => {
    cursor = Math.max(0, Math.min(revisions.length - 1, place));
    const [name, summary] = revisions[cursor], value = series.values[cursor];
    const change = series.changes.find(([at]) => at === cursor);
    says.textContent = [name, summary, Number.isNaN(value) ? "not measured" : told(value, series.unit), change?.[1]].filter(Boolean).join(" · ");
    draw();
  };

  const choose = (row) => {
    table.querySelector("tr[aria-current]")?.removeAttribute("aria-current");
    row.setAttribute("aria-current", "true");
    series = JSON.parse(row.querySelector("script").textContent);
    series.values = new Float32Array(Uint8Array.from(atob(series.values), (byte) => byte.charCodeAt(0)).buffer);
    title.textContent = series.name;
    cursor = undefined;
    says.textContent = "";
    draw();
  };

  svg.addEventListener("pointermove", (event) => {
    const share = (event.clientX - svg.getBoundingClientRect().left - LEFT) / (svg.clientWidth - LEFT - RIGHT);
    point(Math.round(share * (revisions.length - 1)));
  });
  svg.addEventListener("keydown", (event) => {
    const at = cursor ?? 0, places = series.changes.map(([place]) => place);
    const next = {
      ArrowLeft: at - 1, ArrowRight: cursor === undefined ? 0 : at + 1, Home: 0, End: revisions.length - 1,
      ArrowUp: places.findLast((place) => place < at), ArrowDown: places.find((place) => place > at),
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    point(next);
  });
  window.addEventListener("resize", draw);

  for (const row of rows) {
    const name = row.querySelector(".name"), button = document.createElement("button");
    button.type = "button";
    button.append(...name.childNodes);
    name.append(button);
    row.addEventListener("click", () => choose(row));
  }

  const find = document.getElementById("find"), changed = document.getElementById("changed");
  const texts = new Map(rows.map((row) => [row, row.cells[0].textContent.toLowerCase()]));
  const filter = () => {
    const wanted = find.value.trim().toLowerCase();
    for (const row of rows) row.hidden = !texts.get(row).includes(wanted) || (changed.checked && row.dataset.changed === undefined);
    const left = rows.filter((row) => !row.hidden).length;
    document.querySelector("output[for='find changed']").textContent = left < rows.length ? `${left} of ${rows.length}` : "";
  };
  find.addEventListener("input", filter);
  changed.addEventListener("change", filter);
  document.documentElement.classList.add("live");
  filter(); // a browser may have kept what was typed before the page was loaded again
  choose(rows.find((row) => row.dataset.changed !== undefined) ?? rows[0]);
})();
