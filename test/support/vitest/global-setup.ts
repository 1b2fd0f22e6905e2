import { findServer } from "../../../shared/embedded-nats/index.ts";

/** Before all tests and once: fetched here, no test file pays for the download or does it twice. */
export default async function setup(): Promise<void> {
  let told = false;
  await findServer({
    onProgress: () => {
      if (!told) console.log("fetching nats-server once, into the cache in the home folder");
      told = true;
    },
  });
}
