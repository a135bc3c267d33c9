let schemas = 0

/** A name that no other test of the database uses. */
export function newSchema(): string {
  return `headwater_${process.pid}_${schemas++}`
}
