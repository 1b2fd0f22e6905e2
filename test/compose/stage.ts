import type { Driver } from "./driver.ts";
import type { Engine } from "./engine/index.ts";
import type { BaseImages } from "./images/stand-ins.ts";
import type { Journal } from "./journal.ts";
import type { Project } from "./project.ts";

/** What a step needs before anything is up. */
export interface Ground {
  readonly engine: Engine;
  readonly images: BaseImages;
  readonly journal: Journal;
  /** Temporary, outside the repository. */
  readonly folder: string;
  /** The test's application, outside the repository too. */
  readonly appDir: string;
}

/** And once it is up. */
export interface Stage extends Ground {
  readonly project: Project;
  readonly driver: Driver;
}

export const imageName = "holdfast-test:local";

let counter = 0;
/** Instance ids of one run. */
export const newId = (what: string): string => `${what}-${++counter}`;
