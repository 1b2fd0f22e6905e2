/**
 * Every code that Holdfast gives an error, a log line or a finding, with its cause and its remedy.
 * docs/errors.md is generated from this (`npm run docs:errors`), the command line takes its hints from it,
 * and an architecture test fails for a thrown code that is not listed here.
 */
import { application } from "./application.ts";
import { asking } from "./asking.ts";
import { code } from "./code.ts";
import type { CodeGroup, CodeMeaning } from "./code-group.ts";
import { findings } from "./findings.ts";
import { http } from "./http.ts";
import { logs } from "./logs.ts";
import { nats } from "./nats.ts";
import { sessions } from "./sessions.ts";
import { testing } from "./testing.ts";
import { values } from "./values.ts";
import { work } from "./work.ts";

export const codeGroups: readonly CodeGroup[] = [
  asking,
  http,
  application,
  code,
  work,
  sessions,
  values,
  nats,
  logs,
  findings,
  testing,
];

export const meaningOf = (wanted: string): CodeMeaning | undefined =>
  codeGroups.find(({ codes }) => Object.hasOwn(codes, wanted))?.codes[wanted];
