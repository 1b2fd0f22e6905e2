export {
  type Capabilities,
  capabilityKey,
  type Doubt,
  derivedCapability,
  detailsKey,
  detailsProof,
  KeyedCapabilities,
  noCapabilities,
} from "./capabilities.ts";
export { capabilityAddress, doubtReport, doubtSessionReport } from "./check-reports.ts";
export type { MacKey } from "./mac.ts";
