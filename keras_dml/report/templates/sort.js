document.querySelectorAll("table.sortable").forEach(function (table) {
  var heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach(function (head, column) {
    head.querySelector("button").addEventListener("click", function () {
      var up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      var value = function (row) {
        var cell = row.cells[column];
        return cell.dataset.value === undefined
          ? cell.textContent : Number(cell.dataset.value);
      };
      var rows = Array.from(table.tBodies[0].rows);
      rows.sort(function (one, other) {
        var a = value(one), b = value(other);
        var order = typeof a === "number"
          ? a - b : a.localeCompare(b, undefined, { numeric: true });
        return up ? order : -order;
      });
      rows.forEach(function (row) { table.tBodies[0].appendChild(row); });
    });
  });
});
