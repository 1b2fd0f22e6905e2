export * from "../../../examples/basics/app.ts";
export * from "../../../examples/cart/app.ts";
