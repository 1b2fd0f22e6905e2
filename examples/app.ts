/** Every example in one application: what `npm start` serves. */

export * from "./account/app.ts";
export * from "./agent/app.ts";
export * from "./auction/app.ts";
export * from "./basics/app.ts";
export * from "./cart/app.ts";
export * from "./classify/app.ts";
export * from "./connection-pool/app.ts";
export * from "./file-cache/app.ts";
export * from "./first/app.ts";
export * from "./flow-control/app.ts";
export * from "./model-pool/app.ts";
export * from "./schedule/app.ts";
export * from "./trip/app.ts";
