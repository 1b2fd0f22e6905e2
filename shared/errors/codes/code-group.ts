/** The meaning of one code: its cause, and what to do about it. Both are whole sentences. */
export interface CodeMeaning {
  cause: string;
  remedy: string;
}

export interface CodeGroup {
  title: string;
  /** Where people meet these codes. */
  about: string;
  codes: Readonly<Record<string, CodeMeaning>>;
}
