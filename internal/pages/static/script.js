// The pages work without this: it reloads a run that is under way, and copies a command.
"use strict";
for (const el of document.querySelectorAll("[data-refresh]")) setTimeout(() => location.replace("?refresh=1"), 1000 * Number(el.dataset.refresh));
for (const el of document.querySelectorAll("code.copy")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", () => navigator.clipboard?.writeText(el.textContent).then(() => { button.textContent = "Copied"; }));
  el.after(" ", button);
}
