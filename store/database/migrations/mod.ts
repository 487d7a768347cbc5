/**
 * All migrations, in order, as a static list: a compiled binary has no folder to look into (report 41).
 *
 * A migration that has run is never edited; the next number changes what it made.
 */
import { records } from "./0001_records.ts";

/** One step of the schema: statements that become durable together. */
export interface Migration {
  /** From 1, without gaps. */
  readonly id: number;
  /** The file's name without its number. */
  readonly name: string;
  /** Single statements, in order. */
  readonly statements: readonly string[];
}

/** Every migration this program knows, lowest id first. */
export const MIGRATIONS: readonly Migration[] = [records];
