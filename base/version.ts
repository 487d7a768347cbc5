/** The version of String, as `string version` and `/describe` print it. */
export const VERSION = "0.1.0";
