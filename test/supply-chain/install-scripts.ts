/** Packages that want to run a script when they are installed. None does (`.npmrc`), but where it says so. */
export const installScripts: Readonly<Record<string, string>> = {
  "@parcel/watcher": "builds itself where no binary fits; not needed",
  "cpu-features": "speeds up ssh2, which nothing here uses",
  esbuild: "replaces a small script by the binary; works without",
  "onnxruntime-node": "fetches CUDA libraries; the GPU image runs it by name (Dockerfile)",
  protobufjs: "checks the version of whoever installs it",
  ssh2: "builds a faster cipher; not used here",
};
