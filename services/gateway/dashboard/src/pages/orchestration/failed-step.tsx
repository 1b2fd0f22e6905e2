/** The panel above a failed orchestration: the failed step, its input, the error of each attempt. */

import type { Work } from "../../../../../../shared/timeline/index.ts";
import { failureText } from "../../../../../../shared/wording/index.ts";
import { plural } from "../../format.ts";
import { userFrames } from "../../history/user-frames.ts";
import { Card, Id, Scrolled, When } from "../../parts/basics.tsx";
import { Json } from "../../parts/json.tsx";

export function FailedStep({ step }: { step: Work }) {
  const { input, failure } = step;
  const tries = step.attempts.length + 1;
  return (
    <Card title={`Failed at ${step.kind} ${step.name} (event ${step.id}), ${plural(tries, "attempt")}`}>
      <ol class="attempts">
        {step.attempts.map((attempt) => (
          <li key={attempt.at}>
            {failureText(attempt.error)}{" "}
            <span class="muted">
              <When at={attempt.at} />
            </span>
          </li>
        ))}
        <li>
          {failure && failureText(failure)}{" "}
          <span class="muted">
            <When at={step.to} />
          </span>
        </li>
      </ol>
      {step.sessionId && (
        <p>
          On session <Id href={`/sessions/${step.sessionId}`}>{step.sessionId}</Id>
        </p>
      )}
      {step.childId && (
        <p>
          Child <Id href={`/orchestrations/${step.childId}`}>{step.childId}</Id>
        </p>
      )}
      <h3>Its input</h3>
      {input && "json" in input ? (
        <Json value={input.json ?? null} label="Input of the failed step" />
      ) : (
        <p class="muted">
          {input && "blob" in input ? "Too big to show here; the history has it." : "None."}
        </p>
      )}
      {failure?.stack && (
        <>
          <h3>Where it was thrown</h3>
          <Stack text={failure.stack} />
        </>
      )}
    </Card>
  );
}

/** Shows the user's own frames first; the engine's frames on demand. */
export function Stack({ text }: { text: string }) {
  const own = userFrames(text);
  return (
    <>
      <Scrolled class="json-text" label="Stack">
        <pre>{own}</pre>
      </Scrolled>
      {own !== text && (
        <details>
          <summary>All frames</summary>
          <Scrolled class="json-text" label="All frames">
            <pre>{text}</pre>
          </Scrolled>
        </details>
      )}
    </>
  );
}
