import { modelError, reasonOf } from "./model-errors.ts";

export type Library = typeof import("@huggingface/transformers");

const packageName = "@huggingface/transformers";

/**
 * transformers.js is an optional peer: users that run no models need not install it, so it is imported when
 * the first model is loaded and never before.
 */
export async function importLibrary(
  importer: () => Promise<Library> = () => import("@huggingface/transformers"),
): Promise<Library> {
  try {
    return await importer();
  } catch (cause) {
    const missing = cause instanceof Error && "code" in cause && cause.code === "ERR_MODULE_NOT_FOUND";
    const advice = missing
      ? `is not installed; models need it: npm install ${packageName}`
      : `is installed but cannot be loaded: ${reasonOf(cause)}`;
    throw modelError("model_package_missing", `The package ${packageName} ${advice}`, { cause });
  }
}
