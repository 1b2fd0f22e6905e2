/**
 * The seeded in-memory twin of the bus: one broker, many clients, virtual time if wanted, random faults.
 *
 *     const clock = new SimulatedClock();
 *     const broker = new MemoryBroker({ clock, seed, faults: someFaults });
 *     const bus = broker.connect();          // a Bus; bus.disconnect(), bus.reconnect(), bus.kill()
 *     broker.stop(); broker.start();         // the server itself, storage kept
 *     broker.fate.hits                       // which faults really struck
 */
export { type BusFaults, noFaults, someFaults } from "./faults.ts";
export { MemoryBroker } from "./memory-broker.ts";
export type { MemoryBus } from "./memory-client.ts";
