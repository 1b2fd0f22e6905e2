/** The logs of the services that the tests of a file started, kept until the file is over: a failure is read from them. */

export interface LoggingService {
  readonly service: string;
  readonly pid: number;
  log(): string;
  /** Its exit code or the signal that ended it, as soon as it has ended. */
  end(): number | string | null;
}

const services = new Set<LoggingService>();
const linesOfEach = 40;

export const keepLog = (service: LoggingService): void => void services.add(service);

/** The last lines of each service, and how those ended that have ended. */
export const lastLines = (): string[] =>
  [...services].map((service) => {
    const end = service.end();
    const title = `${service.service} ${service.pid}, ${end === null ? "running" : `ended with ${end}`}`;
    return [title, ...service.log().trimEnd().split("\n").slice(-linesOfEach)].join("\n  ");
  });

export const forgetLogs = (): void => services.clear();
