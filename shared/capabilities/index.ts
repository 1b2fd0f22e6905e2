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
export { doubtReport, doubtSessionReport, capabilityAddress } from "./check-reports.ts";
