/** The pages to photograph. Pure: a test checks that every route of the dashboard is among them. */

/** Names that the engine makes up, known once the installation runs. */
export interface Derived {
  readonly keyedSession: string;
  readonly worker: string;
}

/** Every route, and every state in which a page says something else. */
export const pictures = ({
  keyedSession,
  worker,
}: Derived): readonly (readonly [name: string, path: string])[] => [
  ["overview", "/"],
  ["orchestrations", "/orchestrations"],
  ["orchestrations-failed", "/orchestrations?status=failed"],
  ["orchestration", "/orchestrations/docs-2026-11"],
  ["orchestration-failed", "/orchestrations/checkout-77"],
  ["orchestration-parked", "/orchestrations/shipment-31"],
  ["orchestration-unserved", "/orchestrations/transcribe-8"],
  ["orchestration-streaming", "/orchestrations/essay-1"],
  ["orchestration-completed", "/orchestrations/docs-1000"],
  ["orchestration-signal", "/orchestrations/docs-approval"],
  ["orchestration-cart", "/orchestrations/cart-5"],
  ["sessions", "/sessions"],
  ["session", "/sessions/docs-approval-s1"],
  ["session-closed", "/sessions/docs-1000-s1"],
  ["session-of-key", `/sessions/${keyedSession}`],
  ["workers", "/workers"],
  ["worker", `/workers/${worker}`],
  ["schedules", "/schedules"],
  ["schedule", "/schedules/nightly"],
  ["schedule-paused", "/schedules/every-quarter"],
  ["limits", "/limits"],
  ["queues", "/queues"],
  ["start", "/start?name=classify-docs"],
  ["import", "/import"],
  ["nothing-here", "/nothing-here"],
];
