import { describe, expect, test } from "vitest";
import { locateModel } from "../../../shared/inference/locate-model.ts";

const nothing = () => false;
const everything = () => true;

describe("locateModel", () => {
  test("an id is looked up in the local folder first", () => {
    const name = { model: "owner/name", localModelPath: "/models", cacheDir: "/cache", allowRemote: true };
    expect(locateModel(name, everything)).toEqual({ kind: "folder", path: "/models/owner/name" });
    expect(locateModel(name, nothing)).toEqual({ kind: "hub", id: "owner/name", revision: "main" });
  });

  test("a fetched model is used where fetching is not allowed", () => {
    const inCache = (path: string) => path.startsWith("/cache");
    const name = { model: "owner/name", localModelPath: "/models", cacheDir: "/cache" };
    expect(locateModel(name, inCache)).toEqual({ kind: "folder", path: "/cache/owner/name" });
    const revised = locateModel({ ...name, revision: "v2" }, inCache);
    expect(revised).toEqual({ kind: "folder", path: "/cache/owner/name/v2" });
  });

  test("a model that is nowhere names the places and the setting", () => {
    const name = { model: "m", localModelPath: "/models", cacheDir: "/cache" };
    const message = /looked at \/models\/m and \/cache\/m; .* allowRemote is false/;
    expect(() => locateModel(name, nothing)).toThrow(message);
    expect(() => locateModel({ model: "m" }, nothing)).toThrow(/localModelPath is not set.*no cache/);
  });

  test("a path is taken as it is, inside the local folder if there is one", () => {
    expect(locateModel({ model: "/data/m" }, everything)).toEqual({ kind: "folder", path: "/data/m" });
    const inside = { kind: "folder", path: "/models/m" };
    expect(locateModel({ model: "/models/m", localModelPath: "/models" }, everything)).toEqual(inside);
    expect(locateModel({ model: "./m", localModelPath: "/models" }, everything)).toEqual(inside);
  });

  test("a path without a model names itself", () => {
    expect(() => locateModel({ model: "/data/m" }, nothing)).toThrow(/No model at \/data\/m/);
  });

  test.each([
    "../secrets",
    "owner/../../etc",
    "./../x",
    "..",
    "owner\\..\\x",
    "/models/../etc",
    "name\0",
    "",
    ".",
    "a/b/c",
    "https://example.org/m",
    "~/m",
    "/etc",
    "/models",
    "/models-of-others/m",
  ])("refuses %j", (model) => {
    const locate = () => locateModel({ model, localModelPath: "/models" }, everything);
    expect(locate).toThrow(expect.objectContaining({ code: "model_name_refused", retryable: false }));
  });

  test.each(["../main", "a/../../b", "", "/etc", "a b"])("refuses the revision %j", (revision) => {
    const locate = () => locateModel({ model: "m", revision, allowRemote: true }, everything);
    expect(locate).toThrow(expect.objectContaining({ code: "model_name_refused" }));
  });

  test.each(["main", "v1.0", "refs/pr/3", "0f1e2d"])("accepts the revision %j", (revision) => {
    const location = { kind: "hub", id: "m", revision };
    expect(locateModel({ model: "m", revision, allowRemote: true }, nothing)).toEqual(location);
  });
});
