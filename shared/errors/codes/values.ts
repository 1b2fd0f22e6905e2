import type { CodeGroup } from "./code-group.ts";

export const values: CodeGroup = {
  title: "Values and files",
  about: "inputs, results, blobs, histories",
  codes: {
    payload_too_large: {
      cause: "A value is larger than the limit.",
      remedy: "Keep it elsewhere and pass a reference to it.",
    },
    not_serialisable: {
      cause:
        "JSON would lose the value: a function, a cycle, a BigInt, a map, a promise that was not awaited; in `ctx.state` also a date, an instance of a class, NaN. The message says where in the value it is.",
      remedy: "Return or pass plain data: a list of entries for a map, `getTime()` of a date.",
    },
    value_missing: {
      cause: "A history file refers to a value that is not in it.",
      remedy: "Write the file with `holdfast history <id> --export`.",
    },
    blob_missing: {
      cause: "A large value is no longer in the object store.",
      remedy: "Restore it and deploy again, or terminate the instance.",
    },
    blob_damaged: {
      cause: "A large value does not have the content that its reference describes.",
      remedy: "Restore the right bytes and deploy again, or terminate the instance.",
    },
    history_unreadable: {
      cause: "A message of the history, or a history file, cannot be read.",
      remedy: "Repair the history; `holdfast history <id> --export` writes a history file.",
    },
    history_incomplete: {
      cause: "The stream lacks messages of the history (perhaps only for now).",
      remedy: "The instance resumes by itself when the stream has them again.",
    },
    history_exists: {
      cause: "An archived history of this id is in the way of a new one.",
      remedy: "Start under another id.",
    },
    archive_incomplete: {
      cause: "The copy of an ended history could not be completed.",
      remedy: "It is tried again by itself.",
    },
    aside_incomplete: {
      cause:
        "The server that answered does not have all messages that were set aside (perhaps only for now).",
      remedy: "Nothing: the next owner of the instance asks again.",
    },
    aside_unreadable: {
      cause: "A message that was set aside cannot be brought back.",
      remedy: "`holdfast get <id>` names it.",
    },
    entry_unreadable: {
      cause: "The register entry of an instance cannot be read.",
      remedy:
        "A newer version wrote it: use a client of that version. Otherwise the engine rewrites it within minutes.",
    },
    invalid_entry: {
      cause: "An entry of a register cannot be read and is skipped.",
      remedy: "A newer version or a person wrote it.",
    },
    model_package_missing: {
      cause: "The inference package is not installed.",
      remedy: "npm install @huggingface/transformers.",
    },
    model_name_refused: {
      cause: "The model's name would lead out of the model folder.",
      remedy: "Name a model inside it.",
    },
    model_not_found: {
      cause: "The model's files are not there.",
      remedy: "Check localModelPath and the name.",
    },
    model_load_failed: {
      cause: "The model could not be loaded.",
      remedy: "The message has the runtime's reason.",
    },
    model_device_unavailable: {
      cause: "The requested device is not there.",
      remedy: 'Use another worker, or `device: "cpu"`.',
    },
    model_run_failed: {
      cause: "The model threw while it ran.",
      remedy: "The message has the runtime's reason.",
    },
    model_disposed: { cause: "The model was used after dispose.", remedy: "Load it again." },
  },
};
