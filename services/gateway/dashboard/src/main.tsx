import { render } from "preact";
import { identify } from "./api.ts";
import { App } from "./app.tsx";
import { followLinks } from "./router.ts";
import "./styles/index.css";

const root = document.getElementById("app");
if (root) {
  followLinks(root);
  render(<App />, root);
  void identify();
}
