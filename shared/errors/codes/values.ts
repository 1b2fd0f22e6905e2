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
      cause: "A value has no JSON form: a function, a cycle, a BigInt.",
      remedy: "Return or pass plain data.",
    },
    value_missing: {
      cause: "A history file refers to a value that is not in it.",
      remedy: "Take the file with `holdfast history <id> --export`.",
    },
    blob_missing: {
      cause: "A large value is no longer in the object store.",
      remedy: "Put it back and deploy again, or terminate the instance.",
    },
    blob_damaged: {
      cause: "A large value is not what its reference promises.",
      remedy: "Put back the right bytes and deploy again, or terminate the instance.",
    },
    history_unreadable: {
      cause: "A message of the history, or a history file, cannot be read.",
      remedy: "Put the history right; a file is taken with `holdfast history <id> --export`.",
    },
    history_incomplete: {
      cause: "Messages of the history are not there (yet).",
      remedy: "It goes on by itself when the stream has them again.",
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
      cause: "Messages that were set aside are not shown (yet) by the server that was asked.",
      remedy: "Nothing: the next owner of the instance asks again.",
    },
    aside_unreadable: {
      cause: "A message that was set aside cannot be brought back.",
      remedy: "`holdfast get <id>` names it.",
    },
    entry_unreadable: {
      cause: "What the registers say of an instance cannot be read.",
      remedy:
        "A newer version wrote it: use a client of that version. Otherwise it is written anew within minutes.",
    },
    invalid_entry: {
      cause: "An entry of a register cannot be read and is skipped.",
      remedy: "A newer version wrote it, or it was written by hand.",
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
      cause: "The device that was asked for is not there.",
      remedy: 'Use another worker, or `device: "cpu"`.',
    },
    model_run_failed: {
      cause: "The model threw while it ran.",
      remedy: "The message has the runtime's reason.",
    },
    model_disposed: { cause: "The model was used after dispose.", remedy: "Load it again." },
  },
};
