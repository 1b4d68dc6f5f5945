// The page that makes a shared link: its address is selected when touched, and copied by a button.

const url = document.querySelector("#made-url");
const button = document.querySelector("#made-copy");

if (url) {
  // Or loading the page again would make another link.
  history.replaceState(null, "", url.dataset.list);
  url.addEventListener("focus", () => url.select());
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(url.value);
    button.textContent = "Copied";
  });
}
