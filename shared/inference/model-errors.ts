import { HoldfastError, messageOf } from "../errors/index.ts";

/** The error codes of models, as users, logs and the history see them. */
export type ModelErrorCode =
  | "model_package_missing"
  | "model_name_refused"
  | "model_not_found"
  | "model_load_failed"
  | "model_device_unavailable"
  | "model_run_failed"
  | "model_disposed";

interface ModelErrorInit {
  /** Set only if another try, perhaps on another worker, can succeed. */
  retryable?: boolean;
  details?: unknown;
  cause?: unknown;
}

export const modelError = (code: ModelErrorCode, message: string, init: ModelErrorInit = {}): HoldfastError =>
  new HoldfastError({ code, message, ...init });

export const reasonOf = (thrown: unknown): string => messageOf(thrown).trim();
