/** Every example in one application: what `npm start` serves. */
export * from "./basics/app.ts";
export * from "./classify/app.ts";
