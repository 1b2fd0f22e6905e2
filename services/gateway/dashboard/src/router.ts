/** Addresses as state: every page, filter and tab is a link that can be shared. */
import { computed, signal } from "@preact/signals";

const current = signal(new URL(location.href));

addEventListener("popstate", () => {
  current.value = new URL(location.href);
});

export const path = computed(() => current.value.pathname);
export const query = computed(() => current.value.searchParams);

export function go(address: string, options: { replace?: boolean } = {}): void {
  const next = new URL(address, location.href);
  if (next.href === current.value.href) return;
  const samePage = next.pathname === current.value.pathname;
  history[options.replace ? "replaceState" : "pushState"](null, "", next);
  current.value = next;
  if (!samePage) {
    scrollTo(0, 0);
    // Keyboard and screen-reader users continue at the new page, not at the link they left.
    queueMicrotask(() => document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true }));
  }
}

/** Changes the filters of the current page; empty values are removed from the address. */
export function setQuery(
  changes: Record<string, string | undefined>,
  options: { replace?: boolean } = {},
): void {
  const next = new URL(current.value);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") next.searchParams.delete(name);
    else next.searchParams.set(name, value);
  }
  go(next.href, options);
}

/** Handles plain clicks on our own links inside the page; all other clicks are left to the browser. */
export function followLinks(root: HTMLElement): void {
  root.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (link.pathname.startsWith("/api/") || link.pathname === "/metrics") return;
    event.preventDefault();
    go(link.href);
  });
}
