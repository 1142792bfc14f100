"use strict";
// Adds to a page of trends, which is complete without it, a filter of clusters.
(() => {
  const rows = [...document.querySelector(".ranking").tBodies[0].rows];
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
