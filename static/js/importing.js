// The export of another chat, sent with its progress; its import then has a page of its own.

import { showError } from "./page.js";

const megabytes = (bytes) => (bytes / 2 ** 20).toFixed(bytes < 2 ** 20 ? 1 : 0);

/** Send `file` with the form that offers it, and go to the page of its import. */
export function send(form, file) {
  const sending = form.querySelector(".sending");
  const [bar, said] = sending.children;
  const request = new XMLHttpRequest();
  const data = new FormData(form);
  const fail = (words) => {
    sending.hidden = true;
    form.reset();
    showError(words);
  };
  data.set("file", file);
  request.open("POST", form.action);
  request.setRequestHeader("Accept", "application/json");
  request.responseType = "json";
  request.upload.onprogress = ({ loaded, total }) => {
    bar.value = loaded / total;
    said.textContent = loaded < total ? `${megabytes(loaded)} of ${megabytes(total)} MB sent` : "Reading the file";
    if (loaded === total) bar.removeAttribute("value");
  };
  request.onload = () => {
    const { job, error } = request.response ?? {};
    if (job ?? error?.fields.job) location.assign(`${form.action}${job ?? error.fields.job}/`);
    else fail(error?.message ?? "The server could not read it. Nothing was imported.");
  };
  request.onerror = () => fail("No connection. Nothing was imported.");
  sending.hidden = false;
  request.send(data);
}
