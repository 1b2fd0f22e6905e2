import { describe, expect, test } from "vitest";
import { gpuAssignment } from "../../../shared/inference/gpu-assignment.ts";

const visible = (devices: string[], hostIndex: number, devicesPerHost?: number): string =>
  gpuAssignment({ devices, hostIndex, devicesPerHost }).env.CUDA_VISIBLE_DEVICES;

describe("gpuAssignment", () => {
  test("hosts take the devices in turn", () => {
    expect([0, 1, 2].map((host) => visible(["0", "1"], host))).toEqual(["0", "1", "0"]);
  });

  test("a host may need several", () => {
    expect([0, 1, 2].map((host) => visible(["0", "1", "2", "3"], host, 2))).toEqual(["0,1", "2,3", "0,1"]);
    expect(visible(["0", "1", "2"], 1, 2)).toBe("2,0");
  });

  test("no host gets a device twice", () => {
    expect(visible(["0", "1"], 3, 8)).toBe("0,1");
  });

  test("without devices all GPUs are hidden", () => {
    expect(visible([], 2)).toBe("");
  });

  test("UUIDs work like numbers", () => {
    expect(visible(["GPU-8f2a", "GPU-11c0"], 1)).toBe("GPU-11c0");
  });
});
