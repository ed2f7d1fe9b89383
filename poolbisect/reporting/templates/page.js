"use strict";
(function () {
  function keyOf(cell) {
    var given = cell.getAttribute("data-sort");
    var text = given === null ? cell.textContent.trim() : given;
    var number = Number(text.replace(/,/g, "").replace("\u2212", "-"));
    return text !== "" && !Number.isNaN(number) ? number : text.toLowerCase();
  }

  function compare(one, other) {
    if (typeof one === "number" && typeof other === "number") { return one - other; }
    if (typeof one === "number") { return -1; }
    if (typeof other === "number") { return 1; }
    return one < other ? -1 : one > other ? 1 : 0;
  }

  function sortable(table) {
    var body = table.tBodies[0];
    var heads = table.tHead.rows[0].cells;
    if (!body || body.rows.length < 2) { return; }
    Array.prototype.forEach.call(heads, function (head, column) {
      if (body.rows[0].cells[column].querySelector("svg")) { return; }
      var button = document.createElement("button");
      button.type = "button";
      button.title = "Sort by this column";
      while (head.firstChild) { button.appendChild(head.firstChild); }
      head.appendChild(button);
      button.addEventListener("click", function () {
        var downwards = head.getAttribute("aria-sort") === "ascending";
        Array.prototype.forEach.call(heads, function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", downwards ? "descending" : "ascending");
        var rows = Array.prototype.map.call(body.rows, function (row, at) {
          return { row: row, at: at, key: keyOf(row.cells[column]) };
        });
        rows.sort(function (one, other) {
          return (downwards ? -1 : 1) * compare(one.key, other.key) || one.at - other.at;
        });
        var sorted = document.createDocumentFragment();
        rows.forEach(function (one) { sorted.appendChild(one.row); });
        body.appendChild(sorted);
      });
    });
  }

  function filterable(box) {
    var rows = Array.prototype.slice.call(box.querySelectorAll("tbody tr"));
    var texts = null;
    var bar = document.createElement("div");
    var label = document.createElement("label");
    var input = document.createElement("input");
    var state = document.createElement("span");
    bar.className = "filter";
    input.type = "search";
    input.placeholder = "words in a row";
    input.setAttribute("aria-label", "Filter: " + box.getAttribute("data-filter"));
    state.setAttribute("role", "status");
    label.append("Filter ", input);
    bar.append(label, state);
    box.insertBefore(bar, box.firstChild);
    input.addEventListener("input", function () {
      var wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      var shown = 0;
      texts = texts || rows.map(function (row) { return row.textContent.toLowerCase(); });
      rows.forEach(function (row, at) {
        var fits = wanted.every(function (word) { return texts[at].indexOf(word) >= 0; });
        row.hidden = !fits;
        shown += fits ? 1 : 0;
      });
      state.textContent = wanted.length ? shown + " of " + rows.length + " shown" : "";
    });
  }

  document.querySelectorAll(".table table").forEach(sortable);
  document.querySelectorAll(".table[data-filter]").forEach(filterable);

  function reveal() {
    var place = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    var fold = place && place.closest("details");
    if (fold) { fold.open = true; }
  }
  window.addEventListener("hashchange", reveal);
  reveal();
})();
