import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const cudaLibrary = "libonnxruntime_providers_cuda.so";

/**
 * Returns the reason why CUDA cannot work here, if the files alone show it. Trying would fail with "Failed to load
 * shared library" and print a red line on stderr for every model loaded on a machine without a GPU.
 */
export function whyNoCuda(
  platform: string = process.platform,
  arch: string = process.arch,
): string | undefined {
  if (platform !== "linux" || arch !== "x64") {
    return `onnxruntime offers CUDA from Node on linux x64 only, this is ${platform} ${arch}`;
  }
  const folder = bindingFolder(platform, arch);
  if (folder === undefined || existsSync(join(folder, cudaLibrary))) return undefined;
  return `onnxruntime-node is installed without ${cudaLibrary} (looked in ${folder}); with CUDA 12 and cuDNN 9 on the machine, install it with ONNXRUNTIME_NODE_INSTALL=cuda12`;
}

/** Undefined if the package has an unknown layout: then only a try shows whether CUDA works. */
function bindingFolder(platform: string, arch: string): string | undefined {
  try {
    const transformers = createRequire(import.meta.url).resolve("@huggingface/transformers");
    const onnxruntime = createRequire(transformers).resolve("onnxruntime-node");
    const bin = join(dirname(onnxruntime), "..", "bin");
    const version = readdirSync(bin).find((name) => name.startsWith("napi-v"));
    const folder = version && join(bin, version, platform, arch);
    return folder && existsSync(folder) ? folder : undefined;
  } catch {
    return undefined;
  }
}
