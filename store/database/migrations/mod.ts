/**
 * All migrations, in order, as a static list: a compiled binary has no folder to look into (report 41).
 *
 * A migration that has run is never edited; the next number changes what it made.
 */
import { records } from "./0001_records.ts";
import type { Migration } from "../migration.ts";

export type { Migration };

/** Every migration this program knows, lowest id first. */
export const MIGRATIONS: readonly Migration[] = [records];
