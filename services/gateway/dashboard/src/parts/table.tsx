/** Columns of tables: numbers stand right, and on a phone each has its heading beside it. */
import type { ComponentChildren } from "preact";
import { mayAct } from "../api.ts";

export const NumberHead = ({ children }: { children: ComponentChildren }) => (
  <th scope="col" class="right">
    {children}
  </th>
);

export const NumberCell = (props: { label: string; children: ComponentChildren }) => (
  <td class="right number" data-label={props.label}>
    {props.children}
  </td>
);

/** The heading above the buttons of each row, for screen readers alone; nothing for callers who may not act. */
export const ActionsHead = () =>
  mayAct() ? (
    <th scope="col">
      <span class="hidden">Actions</span>
    </th>
  ) : null;
