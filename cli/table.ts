/** Tables of text. */

/** Returns lines of a table under its headings, indented by two spaces; columns are as wide as their widest cell. */
export function toTable(headings: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [headings, ...rows];
  const widths = headings.map((_, column) => Math.max(...all.map((row) => [...(row[column] ?? "")].length)));
  return all.map((row) =>
    `  ${
      row.map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - [...cell].length)).join("  ")
        .trimEnd()
    }`
  );
}
