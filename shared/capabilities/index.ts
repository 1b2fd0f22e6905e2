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
export { doubtReport, doubtSessionReport, shownWith } from "./check-reports.ts";
