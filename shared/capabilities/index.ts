export {
  type Capabilities,
  capabilityKey,
  type Doubt,
  derivedCapability,
  detailsKey,
  detailsProof,
  KeyedCapabilities,
  type KeyedCapabilitiesOptions,
  noCapabilities,
  type StartBonds,
} from "./capabilities.ts";
export { doubtReport, doubtSessionReport } from "./doubts.ts";
