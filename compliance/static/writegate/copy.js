/* Buttons that copy a text of the page; where the browser does not allow it, the text is selected and the reader is told how. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("button[data-copy]")) {
        const text = document.getElementById(button.dataset.copy);
        const said = button.parentElement.querySelector("[role=status]");
        button.hidden = false;
        button.addEventListener("click", async () => {
            try {
                await navigator.clipboard.writeText(text.textContent);
                said.textContent = "Copied";
            } catch {
                const range = document.createRange();
                range.selectNodeContents(text);
                getSelection().removeAllRanges();
                getSelection().addRange(range);
                said.textContent = "Selected: copy it by the keyboard";
            }
        });
    }
});
