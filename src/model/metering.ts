/** What every record, and each of its headers, counts beside its contents. */
export const RECORD_METERED_BYTES = 8
export const HEADER_METERED_BYTES = 2
