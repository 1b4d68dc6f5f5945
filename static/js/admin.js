// The admin: times in the reader's zone, short in lists, and what the cells of a card are called.

const now = new Date();

function short(date) {
  const time = { hour: "numeric", minute: "2-digit" };
  if (date.toDateString() === now.toDateString()) return date.toLocaleTimeString([], time);
  const day = { day: "numeric", month: "short" };
  if (date.getFullYear() === now.getFullYear()) return date.toLocaleString([], { ...day, ...time });
  return date.toLocaleDateString([], { ...day, year: "numeric" });
}

for (const time of document.querySelectorAll("time[datetime]")) {
  const date = new Date(time.dateTime);
  const whole = date.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  const listed = time.closest("#result_list");
  time.textContent = listed ? short(date) : whole;
  if (listed) time.title = whole;
}

// On a phone each row is a card: figures need their names there, and empty cells no room.

const heads = [...document.querySelectorAll("#result_list thead th")];
const names = heads.map((head) => head.querySelector(".text")?.textContent.trim() ?? "");
const rows = [...document.querySelectorAll("#result_list tbody tr")];

for (const row of rows) {
  for (const [place, cell] of [...row.cells].entries()) {
    const said = cell.textContent.trim();
    const told = cell.querySelector(":scope > img[alt]")?.alt;
    if (told === "False" || (!told && ["", "–"].includes(said) && !cell.querySelector("input"))) {
      cell.dataset.empty = "";
    } else if (told || (/^([$\d]|yes$)/.test(said) && !cell.querySelector("time, .share, .sizes"))) {
      cell.dataset.label = names[place];
    }
  }
}

// A column in which no row says anything only takes room.

for (const [place, head] of heads.entries()) {
  const cells = rows.map((row) => row.cells[place]);
  if (cells.length < 2 || !cells.every((cell) => "empty" in cell.dataset)) continue;
  for (const cell of [head, ...cells]) cell.hidden = true;
}
