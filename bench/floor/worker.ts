/** The second process of the floor: receives a task, stores its completion, then acknowledges the task. */
import { machineMs } from "../clock.ts";
import { FloorLink } from "./link.ts";
import { bodyBytes, floorSettings } from "./protocol.ts";
import { floorNames } from "./topology.ts";

const { url, worker } = floorSettings();
const link = await FloorLink.connect(url, `floor-worker-${worker}`);
const ack = new TextEncoder().encode("+ACK");

link.consume(floorNames.work, floorNames.taskConsumer(worker), 200, (message) => {
  const [, , id = ""] = message.subject.split(".");
  const headers = { "Nats-Msg-Id": `done-${message.headers?.get("Nats-Msg-Id")}` };
  void link
    .store(floorNames.completion(id), String(machineMs()).padEnd(bodyBytes.report), headers)
    .then(() => link.nc.publish(message.reply ?? "", ack));
});
link.nc.subscribe(floorNames.direct(worker), {
  callback: (_error, message) => {
    message.respond(String(machineMs()).padEnd(bodyBytes.report));
  },
});
await link.nc.flush();
process.send?.("ready");
