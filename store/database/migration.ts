/** One step of the schema: statements that become durable together. */
export interface Migration {
  /** From 1, without gaps. */
  readonly id: number;
  /** The file's name without its number. */
  readonly name: string;
  /** Single statements, in order. */
  readonly statements: readonly string[];
}
