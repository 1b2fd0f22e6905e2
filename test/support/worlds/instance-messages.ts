/** What instances are sent, as the testing kit writes it. */
export * from "../../../shared/testing/story/messages.ts";
