/** The model is a fake, its worker dies wherever it can. Run it: npx vitest run examples/classify */
import { testEnvironment } from "holdfast/testing";
import { expect, test } from "vitest";
import * as app from "./app.ts";

const documents = ["win money now", "see you at ten", "win a trip"];
const labelOf = (text: string) => ({ label: text.startsWith("win") ? "spam" : "ham", score: 1 });

test("every document has its label, wherever the holder of the model dies", async () => {
  await using env = await testEnvironment({ app });
  const places = await env.everyFaultPoint(async (each) => {
    each.fakeSession(app.classifier, { classify: (_model, text) => labelOf(text) }, () => ({}));
    const handle = await each.client.start(app.classifyDocuments, { documents, atOnce: 2 });
    expect((await handle.result()).labels).toEqual(documents.map(labelOf));
  });
  expect(places).toContain("after-call");
});

test("without a session every document loads the model", async () => {
  await using env = await testEnvironment({ app });
  let loads = 0;
  env.fake(app.classifyOnce, (text) => {
    loads++;
    return labelOf(text);
  });
  const handle = await env.client.start(app.classifyCold, { documents });
  expect((await handle.result()).labels).toEqual(documents.map(labelOf));
  expect(loads).toBe(documents.length);
});
