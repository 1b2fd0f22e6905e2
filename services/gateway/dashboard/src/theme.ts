/** Light or dark: the system decides until the user chooses. */
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const key = "holdfast-theme";

function stored(): Theme {
  const value = localStorage.getItem(key);
  return value === "light" || value === "dark" ? value : "system";
}

export const theme = signal<Theme>(stored());

effect(() => {
  if (theme.value === "system") {
    localStorage.removeItem(key);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(key, theme.value);
    document.documentElement.dataset.theme = theme.value;
  }
});

export function nextTheme(): void {
  const order: Theme[] = ["system", "light", "dark"];
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length] ?? "system";
}
