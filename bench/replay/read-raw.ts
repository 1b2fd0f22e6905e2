import { createInbox, type NatsConnection } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";

let connection: Promise<NatsConnection> | undefined;

/** All messages of a subject by batch direct get, each parsed as JSON: what reading a history costs at least. */
export async function readRaw(url: string, stream: string, subject: string, count: number): Promise<void> {
  const nc = await (connection ??= connect({ servers: url }));
  let next = 1;
  let got = 0;
  while (got < count) {
    const inbox = createInbox();
    await new Promise<void>((resolve) => {
      const subscription = nc.subscribe(inbox, {
        callback: (_error, message) => {
          if (message.headers?.code) {
            subscription.unsubscribe();
            resolve();
            return;
          }
          message.json();
          got++;
          next = Number(message.headers?.get("Nats-Sequence")) + 1;
        },
      });
      const request = { seq: next, next_by_subj: subject, batch: 1000 };
      nc.publish(`$JS.API.DIRECT.GET.${stream}`, JSON.stringify(request), { reply: inbox });
    });
  }
}
