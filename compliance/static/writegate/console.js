/* Two helps for readers: the reader's own time beside UTC, and the frame's pointer-only switches under the keyboard. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
    const zone = new Intl.DateTimeFormat("en", {
        year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short",
    });
    /* Written like the UTC beside it, year first, so that no reader takes the month for the day. */
    const spelled = (moment) => {
        const part = Object.fromEntries(zone.formatToParts(moment).map(({ type, value }) => [type, value]));
        return `${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute} ${part.timeZoneName}`;
    };
    if (new Intl.DateTimeFormat().resolvedOptions().timeZone !== "UTC") {
        for (const time of document.querySelectorAll("time.wg-time")) {
            const own = document.createElement("span");
            own.className = "wg-local";
            own.textContent = ` (${spelled(new Date(time.dateTime))})`;
            time.after(own);
        }
    }

    const switches = [
        ['[x-on\\:click*="sidebarMobileOpen = "]', "Show or hide the navigation"],
        ['[x-on\\:click*="sidebarDesktopOpen = "]', "Show or hide the navigation"],
        ['[x-on\\:click*="openUserLinks = "]', "Your account"],
        ['a[x-on\\:click*="filterOpen = true"]', ""],
        ['a[x-on\\:click*="switchTheme"]', ""],
    ];
    for (const [selector, label] of switches) {
        for (const element of document.querySelectorAll(selector)) {
            element.tabIndex = 0;
            element.setAttribute("role", "button");
            if (label) {
                element.setAttribute("aria-label", label);
            }
            element.addEventListener("keydown", (event) => {
                if (event.key === "Enter" || event.key === " ") {
                    event.preventDefault();
                    element.click();
                }
            });
        }
    }

    const search = document.getElementById("searchbar");
    if (search && !search.labels.length) {
        search.setAttribute("aria-label", search.placeholder || "Search");
    }
    const submit = document.getElementById("searchbar-submit");
    if (submit) {
        submit.setAttribute("aria-label", "Search");
    }
});
