/** Dates in HTTP headers. Source: RFC 9110 §5.6.7. */

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const TIME = String.raw`(?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)`;
const FORMS = [
  new RegExp(String.raw`^[A-Z][a-z]{2}, (?<day>\d\d) (?<month>[A-Z][a-z]{2}) (?<year>\d{4}) ${TIME} GMT$`),
  new RegExp(String.raw`^[A-Z][a-z]{5,8}, (?<day>\d\d)-(?<month>[A-Z][a-z]{2})-(?<year>\d\d) ${TIME} GMT$`),
  new RegExp(String.raw`^[A-Z][a-z]{2} (?<month>[A-Z][a-z]{2}) (?<day>[ \d]\d) ${TIME} (?<year>\d{4})$`),
];

/** Two digits mean the century that is at most about fifty years away from the time of writing. */
function toYear(digits: string): number {
  const year = Number(digits);
  return digits.length > 2 ? year : year + (year < 75 ? 2000 : 1900);
}

/**
 * Returns the Unix milliseconds of an HTTP date in any of its three forms; undefined for anything else.
 *
 * Stricter than `Date.parse`, which takes nearly any text for some date.
 */
export function parseHttpDate(text: string): number | undefined {
  for (const form of FORMS) {
    const groups = form.exec(text)?.groups;
    if (groups === undefined) continue;
    const { day = "", month = "", year = "", hour = "", minute = "", second = "" } = groups;
    const monthIndex = MONTHS.indexOf(month.toLowerCase());
    const at = new Date(Date.UTC(toYear(year), monthIndex, Number(day), Number(hour), Number(minute)));
    const exact = monthIndex >= 0 && at.getUTCDate() === Number(day) && at.getUTCHours() === Number(hour) &&
      at.getUTCMinutes() === Number(minute);
    // A leap second is a valid date; it counts as the first second after it.
    if (exact && Number(second) <= 60) return at.getTime() + Number(second) * 1000;
  }
  return undefined;
}

/** Returns a time in Unix milliseconds as an HTTP date, in whole seconds. */
export function toHttpDate(timeMs: number): string {
  return new Date(timeMs).toUTCString();
}
