// Pages without a conversation: times in the reader's zone, settings that are saved on change, Undo.

const root = document.documentElement;

for (const time of document.querySelectorAll("time[datetime]")) {
  const date = new Date(time.dateTime);
  time.textContent = date.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}

async function allowed(form) {
  if (!("asksPermission" in form.dataset) || form.querySelector("select").value !== "on") return true;
  return "Notification" in window && (await Notification.requestPermission()) === "granted";
}

async function save(form) {
  const select = form.querySelector("select, textarea");
  const said = document.querySelector("#saved");
  if (!(await allowed(form))) {
    select.value = "off";
    said.textContent = "Your browser does not allow notifications from this page.";
    return;
  }
  try {
    const answer = await fetch(location.href, {
      method: "POST",
      body: new URLSearchParams(new FormData(form)),
      headers: { Accept: "application/json" },
    });
    const json = await answer.json();
    said.textContent = answer.ok ? "Saved." : json.error.message;
    if (answer.ok && select.name === "theme") {
      if (select.value === "system") delete root.dataset.theme;
      else root.dataset.theme = select.value;
    }
  } catch {
    said.textContent = "No connection. Nothing was saved.";
  }
}

for (const form of document.querySelectorAll("form.setting")) {
  form.querySelector("button").hidden = !form.querySelector("textarea");
  form.addEventListener("change", () => save(form));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    save(form);
  });
}

// Cancel closes the editor.
document.addEventListener("reset", (event) => event.target.closest("details")?.removeAttribute("open"));

// After a deletion in the archive the next page offers Undo (list.js).
for (const form of document.querySelectorAll(".rows form[action$='/delete/']")) {
  const title = form.closest("li").querySelector("a").textContent;
  const which = form.getAttribute("action").split("/").at(-3);
  form.addEventListener("submit", () => {
    sessionStorage.setItem("deleted", JSON.stringify({ which, title, back: "undelete", words: "Deleted" }));
  });
}
