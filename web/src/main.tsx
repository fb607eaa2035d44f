// Where does the page begin?
import { render } from "preact";
import { App } from "./app.tsx";
import { applyTheme, storedTheme } from "./theme.ts";
import { installTips } from "./tip.ts";

applyTheme(storedTheme());
installTips();
const page = document.getElementById("page");
if (page) render(<App />, page);
