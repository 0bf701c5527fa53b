/* The mode that the reader chose in the console, else the one of her system; run before anything is drawn. */
"use strict";

(() => {
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    const follow = () => {
        let chosen = "auto";
        try {
            chosen = JSON.parse(window.localStorage.getItem("adminTheme")) || "auto";
        } catch {
            /* Nothing was chosen, or nothing may be kept. */
        }
        document.documentElement.classList.toggle("dark", chosen === "dark" || (chosen === "auto" && dark.matches));
    };
    follow();
    dark.addEventListener("change", follow);
})();
