// Light or dark? As the system says, unless the reader chose.

export type Theme = "system" | "light" | "dark";
const KEY = "machinist-theme";

export function storedTheme(): Theme {
  const stored = localStorage.getItem(KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") {
    localStorage.removeItem(KEY);
    document.documentElement.removeAttribute("data-theme");
  } else {
    localStorage.setItem(KEY, theme);
    document.documentElement.setAttribute("data-theme", theme);
  }
}
