export { type ConcreteDevice, type Device, devices } from "./device-plan.ts";
export { type GpuAssignment, type GpuAssignmentInput, gpuAssignment } from "./gpu-assignment.ts";
export { type LoadPipelineOptions, loadPipeline } from "./load-pipeline.ts";
export type { ModelErrorCode } from "./model-errors.ts";
export type { Pipeline, PipelineFacts } from "./pipeline.ts";
export {
  type LoadedModel,
  type ModelSessionOptions,
  pipelineSession,
  textModel,
} from "./pipeline-session.ts";
export type { TaskOutputs } from "./task-outputs.ts";
export { type Dtype, dtypes, type RunOptions, type TextTask, textTasks } from "./tasks.ts";
export {
  type ThreadLimits,
  type ThreadLimitsInput,
  type ThreadLimitVariable,
  threadLimits,
} from "./thread-limits.ts";
