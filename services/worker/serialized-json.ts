/**
 * A result that the user's thread or process has already turned into JSON: the worker does not serialize it
 * again.
 */
export class SerializedJson {
  readonly json: string;

  constructor(json: string) {
    this.json = json;
  }
}
