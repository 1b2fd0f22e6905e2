/** A result that became JSON where the code that made it runs, in a thread or process of its own: not written again. */
export class SerializedJson {
  readonly json: string;

  constructor(json: string) {
    this.json = json;
  }
}
