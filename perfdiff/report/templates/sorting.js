"use strict";
// Makes the table of a page sort by its columns; the page is complete without it.
(() => {
  const table = document.querySelector(".ranking");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const headers = [...table.querySelectorAll("th[data-sort]")];

  /** Sort by a column; numbers the largest first, texts from A to Z; what has no value stands last. */
  const sort = (header, direction) => {
    const column = header.cellIndex, sign = direction === "ascending" ? 1 : -1;
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
  table.querySelector("th[data-sorted]")?.setAttribute("aria-sort", "ascending");
})();
