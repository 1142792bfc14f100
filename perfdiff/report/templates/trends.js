"use strict";
// Adds to a page of trends that is complete without it: a table of clusters that sorts by its columns, and a filter of clusters.
(() => {
  const table = document.querySelector(".ranking");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const headers = [...table.querySelectorAll("th[data-sort]")];

  /** Sort by a column; numbers the largest first, texts from A to Z; what has no value stands last. */
  const sort = (header, direction) => {
    const column = headers.indexOf(header), sign = direction === "ascending" ? 1 : -1;
    const numeric = header.dataset.sort === "number";
    const value = ({ cells }) => (numeric ? parseFloat(cells[column].dataset.value) : cells[column].textContent.trim().toLowerCase());
    const ordered = rows.map((row) => [value(row), row]);
    ordered.sort(([one], [other]) => {
      if (numeric) return Number.isNaN(one) || Number.isNaN(other) ? Number.isNaN(one) - Number.isNaN(other) : sign * (one - other);
      return sign * one.localeCompare(other, "en");
    });
    body.append(...ordered.map(([, row]) => row));
    for (const each of headers) each.setAttribute("aria-sort", each === header ? direction : "none");
  };
  for (const header of headers) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    header.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const first = header.dataset.sort === "number" ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      sort(header, header.getAttribute("aria-sort") === first ? other : first);
    });
  }
  headers[0].setAttribute("aria-sort", "ascending");

  const find = document.getElementById("find"), costly = document.getElementById("costly");
  const texts = new Map(rows.map((row) => [row, `${row.textContent} ${row.dataset.words}`.toLowerCase()]));
  const filter = () => {
    const wanted = find.value.trim().toLowerCase();
    for (const row of rows) {
      row.hidden = !texts.get(row).includes(wanted) || (costly.checked && row.dataset.costly === undefined);
      const article = document.getElementById(row.dataset.section);
      if (article) article.hidden = row.hidden;
    }
    const left = rows.filter((row) => !row.hidden).length;
    document.querySelector("output[for='find costly']").textContent = left < rows.length ? `${left} of ${rows.length}` : "";
  };
  find.addEventListener("input", filter);
  costly.addEventListener("change", filter);
  filter(); // a browser may have kept what was typed before the page was loaded again
})();
