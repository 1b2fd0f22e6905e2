import { signal } from "@preact/signals";

const shown = signal<{ id: number; text: string }[]>([]);
let next = 0;

export function toast(text: string): void {
  const id = next++;
  shown.value = [...shown.value, { id, text }];
  setTimeout(() => {
    shown.value = shown.value.filter((entry) => entry.id !== id);
  }, 4000);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.value.map((entry) => (
        <div key={entry.id} class="toast">
          {entry.text}
        </div>
      ))}
    </div>
  );
}
