/** A failure in one line, the same wherever people read it. */
export const failureText = ({ message, code }: { message: string; code: string }): string =>
  `${message} (${code})`;
