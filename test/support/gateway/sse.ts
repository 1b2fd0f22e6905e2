/** A listener to server-sent events that can wait for one that fits. */
export interface EventLine {
  event: string;
  data: unknown;
}

export interface EventListener extends AsyncDisposable {
  /** The next one that fits; those before it are dropped. */
  until(fits: (line: EventLine) => boolean, ms?: number): Promise<EventLine>;
}

export async function listen(url: string, headers: Record<string, string> = {}): Promise<EventListener> {
  const hangUp = new AbortController();
  const response = await fetch(url, { headers, signal: hangUp.signal });
  if (!response.ok || !response.body) throw new Error(`${url} answered ${response.status}`);
  const waiting: EventLine[] = [];
  let arrived: () => void = () => undefined;
  const reading = read(response.body, (line) => {
    waiting.push(line);
    arrived();
  }).catch(() => undefined); // hung up by us
  return {
    async until(fits, ms = 10_000) {
      const end = performance.now() + ms;
      for (;;) {
        for (let line = waiting.shift(); line; line = waiting.shift()) if (fits(line)) return line;
        const left = end - performance.now();
        if (left <= 0) throw new Error(`no such event within ${ms} ms`);
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, left);
          arrived = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    },
    async [Symbol.asyncDispose]() {
      hangUp.abort();
      await reading;
    },
  };
}

async function read(body: ReadableStream<Uint8Array>, tell: (line: EventLine) => void): Promise<void> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const [, event, data] = /^event: (.*)\ndata: (.*)$/.exec(text.slice(0, end)) ?? [];
      text = text.slice(end + 2);
      if (event !== undefined && data !== undefined) tell({ event, data: JSON.parse(data) });
    }
  }
}
